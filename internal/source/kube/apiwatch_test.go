package kube_test

import (
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watch sends events until the client leaves or watches are broken.
func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, q query) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	send := func(change string, object any) {
		// An error means that the client is gone, which ends the request's
		// context too.
		_ = encoder.Encode(map[string]any{"type": change, "object": object})
	}
	a.mu.Lock()
	position, broken := q.version, a.broken
	if q.initial {
		position = a.version
		for _, item := range a.matching(q) {
			send("ADDED", item)
		}
		send("BOOKMARK", q.bookmark(position))
	}
	a.mu.Unlock()
	for {
		a.mu.Lock()
		var events []record
		for _, event := range a.history {
			if event.version > position && q.matches(event) {
				events = append(events, event)
			}
		}
		if len(events) > 0 {
			position = events[len(events)-1].version
		}
		changed, over := a.changed, a.broken != broken
		a.mu.Unlock()
		for _, event := range events {
			send(event.change, q.show(event.object))
		}
		w.(http.Flusher).Flush()
		if over {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// bookmark ends a streaming list.
func (q query) bookmark(version int) any {
	meta := metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}
	if q.partial {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: meta,
		}
	}
	o := emptyObject(q.resource)
	o.GetObjectKind().SetGroupVersionKind(kindOf(o).gvk)
	o.SetResourceVersion(meta.ResourceVersion)
	o.SetAnnotations(meta.Annotations)
	return o
}
