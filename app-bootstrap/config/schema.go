package config

import (
	"slices"
	"strings"
)

// node is a section or a key of the schema.
type node struct {
	path     string
	field    *field // nil for a section
	children map[string]*node
}

// schema is the tree of all keys, and allFields the same in the order of the tables.
var (
	allFields = slices.Concat(rateLimitFields, policyFields, parameterFields(), breakerFields, breakerPolicyFields, cacheFields, serviceFields, forwardAuthFields, envoyFields)
	schema    = plant(allFields)
)

func plant(fields []*field) *node {
	root := &node{children: make(map[string]*node)}
	for _, f := range fields {
		at := root
		for _, segment := range strings.Split(f.path, ".") {
			next := at.children[segment]
			if next == nil {
				next = &node{path: join(at.path, segment), children: make(map[string]*node)}
				at.children[segment] = next
			}
			at = next
		}
		at.field = f
	}
	return root
}

// child gives the node of a key, nil where there is none. Every key below policies is a policy.
func (n *node) child(key string) *node {
	if slices.Contains(policyTrees, n.path) {
		return n.children[anyPolicy]
	}
	return n.children[key]
}

// at gives the node of a section's path, which exists.
func at(path string) *node {
	n := schema
	for _, segment := range strings.Split(path, ".") {
		n = n.children[segment]
	}
	return n
}

// locate splits the path of a key as a flag writes it into its segments. A policy's ID may itself
// hold dots. It gives no field where the path names no key.
func locate(path string) ([]string, *field) {
	segments := strings.Split(path, ".")
	if tree, inside, ok := inPolicy(path); ok {
		if cut := strings.LastIndexByte(inside, '.'); cut > 0 {
			segments = append(strings.Split(tree, "."), inside[:cut], inside[cut+1:])
		}
	}
	return segments, find(segments)
}

// find gives the field that segments name, nil for none.
func find(segments []string) *field {
	n := schema
	for _, segment := range segments {
		if n = n.child(segment); n == nil {
			return nil
		}
	}
	return n.field
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func leaf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
