package admission

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/headgate/headgate/internal/admission/review"
)

// A Review decides about an Ingress. It fails if it can't.
type Review func(ctx context.Context, ing *networkingv1.Ingress) (review.Decision, error)

func reviewType() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}
}

// decide answers a request. Operations that make no new version of an object, and
// subresources, are let in without a look. began is when the request came.
func (h *handler) decide(ctx context.Context, request *admissionv1.AdmissionRequest, began time.Time) (*admissionv1.AdmissionResponse, *failure) {
	answer := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	if request.Operation != admissionv1.Create && request.Operation != admissionv1.Update || request.SubResource != "" {
		return answer, nil
	}
	kind := metav1.GroupVersionKind{Group: networkingv1.GroupName, Version: "v1", Kind: "Ingress"}
	if request.Kind != kind {
		return refuse(answer, fmt.Sprintf("this webhook is for Ingresses of networking.k8s.io/v1, not for %s of %s/%s: correct the rules of its ValidatingWebhookConfiguration",
			request.Kind.Kind, request.Kind.Group, request.Kind.Version)), nil
	}
	if n := len(request.Object.Raw); n > maxObject {
		return refuse(answer, fmt.Sprintf("the Ingress has %d bytes: must have at most %d", n, maxObject)), nil
	}
	ing, err := h.ingress(ctx, request)
	if err != nil {
		return nil, err
	}
	if ing == nil {
		return refuse(answer, "the object is not an Ingress of networking.k8s.io/v1"), nil
	}
	asked := time.Now()
	decision, failed := h.review(ctx, ing)
	if h.reviewed != nil {
		h.reviewed(ing, decision, failed, Took{Review: time.Since(asked), Total: time.Since(began)})
	}
	if failed != nil {
		return nil, fail(http.StatusServiceUnavailable, "review the Ingress: %w", failed)
	}
	answer.Warnings = decision.Warnings()
	if !decision.Allowed() {
		return refuse(answer, decision.Message()), nil
	}
	return answer, nil
}

// ingress is the new version, nil if it can't be decoded.
func (h *handler) ingress(ctx context.Context, request *admissionv1.AdmissionRequest) (*networkingv1.Ingress, *failure) {
	leave, failed := h.decoder(ctx)
	if failed != nil {
		return nil, failed
	}
	defer leave()
	ing := &networkingv1.Ingress{}
	if err := kjson.Unmarshal(request.Object.Raw, ing); err != nil {
		return nil, nil
	}
	ing.Namespace, ing.Name = cmp.Or(request.Namespace, ing.Namespace), cmp.Or(ing.Name, request.Name)
	if ing.CreationTimestamp.IsZero() {
		// It must not be older than all others.
		ing.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	}
	return ing, nil
}

// refuse has the status and reason of ingress-nginx.
func refuse(answer *admissionv1.AdmissionResponse, message string) *admissionv1.AdmissionResponse {
	answer.Allowed = false
	answer.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest, Message: message}
	return answer
}
