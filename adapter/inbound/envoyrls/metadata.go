package envoyrls

import (
	"fmt"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// dynamicMetadata repeats what the caller sent, and says what quotas are over and what the rules of
// passing descriptors have as metadata. The names are those that consumers of envoyproxy/ratelimit read.
func dynamicMetadata(request *ratelimitv3.RateLimitRequest, questions []question, verdicts []verdict) (*structpb.Struct, error) {
	descriptors := make([]any, 0, len(questions))
	for _, d := range request.GetDescriptors() {
		descriptors = append(descriptors, descriptorMetadata(d))
	}
	fields := map[string]any{"domain": request.GetDomain(), "descriptors": descriptors}
	if hits := request.GetHitsAddend(); hits != 0 {
		fields["hitsAddend"] = float64(hits)
	}
	quotas := false
	var violations []any
	metadata := make(map[string]any)
	for i := range questions {
		q, v := &questions[i], &verdicts[i]
		if q.mode == rules.ModeQuota && q.plan != planNone {
			quotas = true
			if v.denied && !v.failed && !v.enforced {
				violations = append(violations, float64(i))
			}
		}
		if q.rule != nil && q.plan == planAsk && !v.failed && !v.enforced && (!v.denied || q.mode == rules.ModeShadow) {
			mergeMetadata(metadata, q.rule.Metadata)
		}
	}
	fields["quotaModeEnabled"] = quotas
	if len(violations) > 0 {
		fields["quotaModeViolations"] = violations
	}
	if len(metadata) > 0 {
		fields["metadata"] = metadata
	}
	return structpb.NewStruct(fields)
}

func descriptorMetadata(d *commonv3.RateLimitDescriptor) map[string]any {
	entries := make([]any, 0, len(d.GetEntries()))
	for _, e := range d.GetEntries() {
		entries = append(entries, e.GetKey()+"="+e.GetValue())
	}
	fields := map[string]any{"entries": entries}
	if limit := d.GetLimit(); limit != nil {
		text := fmt.Sprintf("%d/%v", limit.GetRequestsPerUnit(), limit.GetUnit())
		if m := limit.GetUnitMultiplier(); m != nil {
			text = fmt.Sprintf("%d/%d %v", limit.GetRequestsPerUnit(), m.GetValue(), limit.GetUnit())
		}
		fields["limit"] = text
	}
	if hits := d.GetHitsAddend(); hits != nil {
		fields["hitsAddend"] = float64(hits.GetValue())
	}
	return fields
}

// mergeMetadata adds what is not there yet; mappings are merged into mappings. What it takes from is not
// changed, and what it adds to shares no mapping with it.
func mergeMetadata(into, from map[string]any) {
	for key, value := range from {
		nested, isMapping := value.(map[string]any)
		there, exists := into[key]
		switch {
		case exists && isMapping:
			if mapping, ok := there.(map[string]any); ok {
				mergeMetadata(mapping, nested)
			}
		case exists:
		case isMapping:
			own := make(map[string]any, len(nested))
			mergeMetadata(own, nested)
			into[key] = own
		default:
			into[key] = value
		}
	}
}
