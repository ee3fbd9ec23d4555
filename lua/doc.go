// Package lua holds the versioned programs that run inside Redis, and the manifest that binds each
// to its descriptor, its SHA-1 and the lowest Redis version that the whole suite has run on.
//
// A released program never changes: what behaves differently is the next version, beside it. A
// program is the text of its file with each shared prelude in the place of its line, such as
// `-- @include prelude-v1`; the digest is that of the assembled text. Each begins with `#!lua` and
// no flags, so that a replica, a full or a failing server refuses it before it runs.
//
// Programs work in integers only, up to 2^53-1, and write the harmless first and the spending last.
package lua
