package authority

import (
	"errors"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/test/clienttest"
	"github.com/headgate/headgate/internal/unit/link"
)

func TestReviewer(t *testing.T) {
	const user = "system:serviceaccount:own:headgate-edge"
	status := func(user string, audiences []string, pod ...string) authenticationv1.TokenReviewStatus {
		s := authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: audiences, User: authenticationv1.UserInfo{Username: user}}
		if len(pod) > 0 {
			s.User.Extra = map[string]authenticationv1.ExtraValue{podName: pod}
		}
		return s
	}
	own := []string{Audience}
	for name, c := range map[string]struct {
		status authenticationv1.TokenReviewStatus
		want   link.Identity
		err    string
	}{
		"a Pod":              {status(user, own, "edge-1"), link.Identity{Name: "edge-1", Account: "own/headgate-edge"}, ""},
		"no Pod":             {status(user, own), link.Identity{Name: "headgate-edge", Account: "own/headgate-edge"}, ""},
		"two Pods":           {status(user, own, "a", "b"), link.Identity{Name: "headgate-edge", Account: "own/headgate-edge"}, ""},
		"a group":            {status("system:serviceaccount:shop:edge", []string{"x", Audience}, "edge-1"), link.Identity{Group: "shop", Name: "edge-1", Account: "shop/edge"}, ""},
		"another audience":   {status(user, []string{"https://kubernetes.default.svc"}, "edge-1"), link.Identity{}, "does not say that the audience"},
		"no audience":        {status(user, nil, "edge-1"), link.Identity{}, "does not say that the audience"},
		"another account":    {status("system:serviceaccount:a:b", own), link.Identity{}, "the token is of the ServiceAccount a/b, and --edge-account allows own/headgate-edge, shop/edge"},
		"a user":             {status("admin", own), link.Identity{}, "of admin, which is not a ServiceAccount"},
		"a user like one":    {status("system:serviceaccount:own:headgate-edge:x", own), link.Identity{}, "not a ServiceAccount"},
		"a user without one": {status("system:serviceaccount::", own), link.Identity{}, "not a ServiceAccount"},
		"a node":             {status("own:headgate-edge", own), link.Identity{}, "not a ServiceAccount"},
		"expired":            {authenticationv1.TokenReviewStatus{Error: "token has expired", Audiences: own, User: authenticationv1.UserInfo{Username: user}}, link.Identity{}, "token has expired"},
	} {
		cluster := fake.NewClientset()
		cluster.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
			review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
			if review.Spec.Token != "token" || len(review.Spec.Audiences) != 1 || review.Spec.Audiences[0] != Audience {
				t.Errorf("asked for %v", review.Spec)
			}
			review.Status = c.status
			return true, review, nil
		})
		r := &Reviewer{Client: clienttest.Of(cluster), Accounts: map[types.NamespacedName]string{
			{Namespace: "own", Name: "headgate-edge"}: "", {Namespace: "shop", Name: "edge"}: "shop",
		}}
		got, err := r.Review(t.Context(), "token")
		_, refused := errors.AsType[link.Refusal](err)
		if got != c.want || refused != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// TestReviewFails: that the API server does not answer is not the fault of an edge.
func TestReviewFails(t *testing.T) {
	cluster := fake.NewClientset()
	cluster.PrependReactor("create", "tokenreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("it is away")
	})
	_, err := (&Reviewer{Client: clienttest.Of(cluster)}).Review(t.Context(), "token")
	if _, refused := errors.AsType[link.Refusal](err); err == nil || refused {
		t.Errorf("got %v", err)
	}
}

// TestRenew: an account that is not allowed any more, or has another group now, gets no other certificate.
func TestRenew(t *testing.T) {
	r := &Reviewer{Accounts: map[types.NamespacedName]string{
		{Namespace: "shop", Name: "edge"}: "shop", {Namespace: "own", Name: "edge"}: "", {Namespace: "own", Name: "second"}: "",
	}}
	for _, c := range []struct {
		account, group, err string
	}{
		{"shop/edge", "shop", ""},
		{"own/edge", "", ""},
		{"own/gone", "", "does not allow the ServiceAccount own/gone without a group"},
		{"shop/gone", "shop", "does not allow the ServiceAccount shop/gone with the group shop"},
		{"shop/edge", "", "does not allow the ServiceAccount shop/edge without a group"},
		{"own/edge", "shop", "does not allow the ServiceAccount own/edge with the group shop"},
		{"", "", "names no ServiceAccount"},
	} {
		err := r.Renew(link.Identity{Group: c.group, Name: "edge-1", Account: c.account})
		_, refused := errors.AsType[link.Refusal](err)
		if refused != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("account %q, group %q: %v", c.account, c.group, err)
		}
	}
}
