package client

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// object is a pointer to an object of the API server, list one to a list.
type (
	object[T any] interface {
		*T
		runtime.Object
		metav1.Object
	}
	list[L any] interface {
		*L
		runtime.Object
	}
)

// typed has the requests for objects of one type. Each returns an object with an error, too, an empty one.
type typed[T, L any, PT object[T], PL list[L]] struct {
	client    rest.Interface
	codec     runtime.ParameterCodec
	resource  string
	namespace string // empty for those of all namespaces, or of none
}

// all is a request to the resource.
func (t typed[T, L, PT, PL]) all(r *rest.Request) *rest.Request {
	return r.NamespaceIfScoped(t.namespace, t.namespace != "").Resource(t.resource)
}

// one is a request to one object. It fails without a name.
func (t typed[T, L, PT, PL]) one(r *rest.Request, name string, subresources ...string) *rest.Request {
	return t.all(r).Name(name).SubResource(subresources...)
}

func (t typed[T, L, PT, PL]) do(ctx context.Context, r *rest.Request) (PT, error) {
	answer := PT(new(T))
	return answer, r.Do(ctx).Into(answer)
}

func (t typed[T, L, PT, PL]) Get(ctx context.Context, name string, options metav1.GetOptions) (PT, error) {
	return t.do(ctx, t.one(t.client.Get(), name).VersionedParams(&options, t.codec))
}

func (t typed[T, L, PT, PL]) several(options *metav1.ListOptions) *rest.Request {
	r := t.all(t.client.Get()).VersionedParams(options, t.codec)
	if options.TimeoutSeconds != nil {
		r = r.Timeout(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
	return r
}

func (t typed[T, L, PT, PL]) List(ctx context.Context, options metav1.ListOptions) (PL, error) {
	answer := PL(new(L))
	return answer, t.several(&options).Do(ctx).Into(answer)
}

func (t typed[T, L, PT, PL]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return t.several(&options).Watch(ctx)
}

func (t typed[T, L, PT, PL]) Create(ctx context.Context, o PT, options metav1.CreateOptions) (PT, error) {
	return t.do(ctx, t.all(t.client.Post()).VersionedParams(&options, t.codec).Body(o))
}

func (t typed[T, L, PT, PL]) Update(ctx context.Context, o PT, options metav1.UpdateOptions) (PT, error) {
	return t.do(ctx, t.one(t.client.Put(), o.GetName()).VersionedParams(&options, t.codec).Body(o))
}

func (t typed[T, L, PT, PL]) UpdateStatus(ctx context.Context, o PT, options metav1.UpdateOptions) (PT, error) {
	return t.do(ctx, t.one(t.client.Put(), o.GetName(), "status").VersionedParams(&options, t.codec).Body(o))
}

func (t typed[T, L, PT, PL]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (PT, error) {
	return t.do(ctx, t.one(t.client.Patch(kind), name, subresources...).VersionedParams(&options, t.codec).Body(data))
}
