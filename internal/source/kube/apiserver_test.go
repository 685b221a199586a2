package kube_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/test/porttest"
)

// An apiServer answers what a source asks as a real one does: lists, streaming
// lists, watches, field selectors, metadata alone, versions that are too old
// or too new. client-go's fakes know nothing of selectors and versions.
type apiServer struct {
	t       *testing.T
	address string

	mu      sync.Mutex
	changed chan struct{} // closed and renewed with each change
	server  *http.Server

	version int
	objects map[string]record // by resource/namespace/name
	history []record
	// compacted is the newest version of which no watch can start.
	compacted int
	broken    int // counts how often all watches were broken
	forbidden map[string]bool
	// oldServer does not stream lists.
	oldServer bool
	requests  []string
}

// A record is an object at a version.
type record struct {
	resource string
	version  int
	change   string // ADDED, MODIFIED, DELETED
	object   object
}

type object interface {
	metav1.Object
	runtime.Object
}

func newAPIServer(t *testing.T) *apiServer {
	a := &apiServer{t: t, address: fmt.Sprintf("127.0.0.1:%d", porttest.Free(t)), version: 10, objects: map[string]record{}, forbidden: map[string]bool{}, changed: make(chan struct{})}
	a.up()
	t.Cleanup(a.down)
	return a
}

func (a *apiServer) url() string { return "http://" + a.address }

// up starts to answer, at the same address as before.
func (a *apiServer) up() {
	a.t.Helper()
	listener, err := net.Listen("tcp", a.address)
	if err != nil {
		a.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(a.serve)}
	a.mu.Lock()
	a.server = server
	a.mu.Unlock()
	go server.Serve(listener)
}

// down closes all connections; others are refused from then on.
func (a *apiServer) down() {
	a.mu.Lock()
	server := a.server
	a.mu.Unlock()
	server.Close()
}

// change changes the state and wakes all watches.
func (a *apiServer) change(edit func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	edit()
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *apiServer) put(objects ...object) {
	a.change(func() {
		for _, o := range objects {
			a.store(o.DeepCopyObject().(object), "ADDED")
		}
	})
}

func (a *apiServer) remove(objects ...object) {
	a.change(func() {
		for _, o := range objects {
			a.store(o.DeepCopyObject().(object), "DELETED")
		}
	})
}

func (a *apiServer) store(o object, change string) {
	kind := kindOf(o)
	o.GetObjectKind().SetGroupVersionKind(kind.gvk)
	a.version++
	o.SetResourceVersion(strconv.Itoa(a.version))
	key := kind.resource + "/" + o.GetNamespace() + "/" + o.GetName()
	was, ok := a.objects[key]
	if ok {
		o.SetUID(was.object.GetUID())
	} else {
		o.SetUID(types.UID(strconv.Itoa(a.version)))
	}
	if ok && change == "ADDED" {
		change = "MODIFIED"
	}
	r := record{kind.resource, a.version, change, o}
	a.history = append(a.history, r)
	if change == "DELETED" {
		delete(a.objects, key)
		return
	}
	a.objects[key] = r
}

// A snapshot is what a backup of etcd holds.
type snapshot struct {
	version int
	objects map[string]record
}

func (a *apiServer) snapshot() snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := snapshot{a.version, map[string]record{}}
	for key, r := range a.objects {
		s.objects[key] = r
	}
	return s
}

func (a *apiServer) restore(s snapshot) {
	a.change(func() { a.version, a.objects, a.history, a.compacted = s.version, s.objects, nil, s.version-1 })
}

func (a *apiServer) breakWatches() { a.change(func() { a.broken++ }) }

func (a *apiServer) forbid(what string, yes bool) { a.change(func() { a.forbidden[what] = yes }) }

// asked counts requests that begin with the text "verb resource".
func (a *apiServer) asked(prefix string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

type kind struct {
	resource string
	gvk      schema.GroupVersionKind
}

func kindOf(o runtime.Object) kind {
	switch o.(type) {
	case *networkingv1.Ingress:
		return kind{"ingresses", networkingv1.SchemeGroupVersion.WithKind("Ingress")}
	case *networkingv1.IngressClass:
		return kind{"ingressclasses", networkingv1.SchemeGroupVersion.WithKind("IngressClass")}
	case *corev1.Service:
		return kind{"services", corev1.SchemeGroupVersion.WithKind("Service")}
	case *discoveryv1.EndpointSlice:
		return kind{"endpointslices", discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")}
	case *corev1.Secret:
		return kind{"secrets", corev1.SchemeGroupVersion.WithKind("Secret")}
	case *corev1.ConfigMap:
		return kind{"configmaps", corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	case *corev1.Pod:
		return kind{"pods", corev1.SchemeGroupVersion.WithKind("Pod")}
	case *corev1.Node:
		return kind{"nodes", corev1.SchemeGroupVersion.WithKind("Node")}
	case *corev1.Namespace:
		return kind{"namespaces", corev1.SchemeGroupVersion.WithKind("Namespace")}
	}
	panic(fmt.Sprintf("the API server has no %T", o))
}

// A query is what is asked of a resource.
type query struct {
	verb, resource, namespace, name string
	selector                        fields.Selector
	partial, initial                bool
	version                         int
}

func parse(r *http.Request) (query, error) {
	q := query{verb: "list", partial: strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	path = path[min(len(path), 2):]
	if path[0] == "v1" {
		path = path[1:]
	}
	if len(path) > 2 && path[0] == "namespaces" {
		q.namespace, path = path[1], path[2:]
	}
	q.resource = path[0]
	if len(path) > 1 {
		q.verb, q.name = "get", path[1]
	}
	values := r.URL.Query()
	if w := values.Get("watch"); w == "true" || w == "1" {
		q.verb = "watch"
	}
	q.initial = values.Get("sendInitialEvents") == "true"
	q.version, _ = strconv.Atoi(values.Get("resourceVersion"))
	var err error
	q.selector, err = fields.ParseSelector(values.Get("fieldSelector"))
	return q, err
}

func (q query) matches(r record) bool {
	if r.resource != q.resource || q.namespace != "" && q.namespace != r.object.GetNamespace() {
		return false
	}
	set := fields.Set{"metadata.name": r.object.GetName()}
	if secret, ok := r.object.(*corev1.Secret); ok {
		set["type"] = string(secret.Type)
	}
	return q.selector.Matches(set)
}

// show is the object, or its metadata.
func (q query) show(o object) any {
	if !q.partial {
		return o
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: *o.(interface{ GetObjectMeta() metav1.Object }).GetObjectMeta().(*metav1.ObjectMeta),
	}
}

func (a *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	q, err := parse(r)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	a.mu.Lock()
	a.requests = append(a.requests, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", q.verb, q.resource, q.namespace, q.selector)))
	refused := a.refusal(q)
	a.mu.Unlock()
	switch {
	case refused != nil:
		refuse(w, refused)
	case q.verb == "watch":
		a.watch(w, r, q)
	case q.verb == "get":
		a.get(w, q)
	default:
		a.list(w, q)
	}
}

func (a *apiServer) refusal(q query) *apierrors.StatusError {
	group := schema.GroupResource{Resource: q.resource}
	switch {
	case a.forbidden[q.verb+" "+q.resource]:
		return apierrors.NewForbidden(group, "", fmt.Errorf("cannot %s", q.verb))
	case q.initial && a.oldServer:
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	case q.verb == "watch" && q.version > 0 && q.version < a.compacted && !q.initial:
		return apierrors.NewResourceExpired("too old resource version")
	case q.version > a.version && (q.verb == "list" || q.initial):
		e := apierrors.NewTimeoutError("Too large resource version", 1)
		e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return e
	}
	return nil
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	json.NewEncoder(w).Encode(err.ErrStatus)
}

func (a *apiServer) get(w http.ResponseWriter, q query) {
	a.mu.Lock()
	r, ok := a.objects[q.resource+"/"+q.namespace+"/"+q.name]
	a.mu.Unlock()
	if !ok {
		refuse(w, apierrors.NewNotFound(schema.GroupResource{Resource: q.resource}, q.name))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(r.object)
}

func (a *apiServer) list(w http.ResponseWriter, q query) {
	a.mu.Lock()
	items := a.matching(q)
	list := map[string]any{
		"kind": "List", "apiVersion": "v1", "items": items,
		"metadata": map[string]string{"resourceVersion": strconv.Itoa(a.version)},
	}
	a.mu.Unlock()
	if q.partial {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	} else {
		gvk := kindOf(emptyObject(q.resource)).gvk
		list["kind"], list["apiVersion"] = gvk.Kind+"List", gvk.GroupVersion().String()
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(list)
}

func emptyObject(resource string) object {
	for _, o := range []object{
		&networkingv1.Ingress{}, &networkingv1.IngressClass{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}, &corev1.Secret{}, &corev1.ConfigMap{},
		&corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{},
	} {
		if kindOf(o).resource == resource {
			return o
		}
	}
	panic("the API server has no " + resource)
}

func (a *apiServer) matching(q query) []any {
	items := []any{}
	for _, r := range a.objects {
		if q.matches(r) {
			items = append(items, q.show(r.object))
		}
	}
	return items
}
