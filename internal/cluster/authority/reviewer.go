package authority

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/client"
	"github.com/headgate/headgate/internal/unit/link"
)

const (
	// Audience is that of the tokens of edges: others are of no use here, and these are of no use elsewhere.
	Audience = "headgate-control"

	userPrefix = "system:serviceaccount:"
	// podName is what API servers say of tokens that are bound to a Pod.
	podName = "authentication.kubernetes.io/pod-name"
)

// A Reviewer says which edge has a token.
type Reviewer struct {
	Client *client.Clients
	// Accounts are the ServiceAccounts of edges, with their groups.
	Accounts map[types.NamespacedName]string
}

// Review has the API server review a token.
func (r *Reviewer) Review(ctx context.Context, token string) (link.Identity, error) {
	review, err := r.Client.TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return link.Identity{}, fmt.Errorf("have the API server review the token: %w", err)
	}
	status := review.Status
	switch {
	case !status.Authenticated:
		return refuse("the API server does not take the token for the audience %s: %s", Audience, status.Error)
	case !slices.Contains(status.Audiences, Audience):
		// Some API servers do not know audiences: their answer is about any token.
		return refuse("the API server does not say that the audience of the token is %s", Audience)
	}
	account, ok := accountOf(status.User.Username)
	if !ok {
		return refuse("the token is of %s, which is not a ServiceAccount", status.User.Username)
	}
	group, ok := r.Accounts[account]
	if !ok {
		return refuse("the token is of the ServiceAccount %s, and --edge-account allows %s", account, r.allowed())
	}
	i := link.Identity{Group: group, Name: account.Name, Account: account.String()}
	if pod := status.User.Extra[podName]; len(pod) == 1 && pod[0] != "" {
		i.Name = pod[0]
	}
	return i, nil
}

// Renew refuses edges whose account is not one of the accounts any more, or is of another group.
func (r *Reviewer) Renew(i link.Identity) error {
	if i.Account == "" {
		return link.Refusal{Reason: "the certificate names no ServiceAccount: it takes a token to get another one"}
	}
	for account, group := range r.Accounts {
		if account.String() == i.Account && group == i.Group {
			return nil
		}
	}
	if i.Group == "" {
		return link.Refusal{Reason: fmt.Sprintf("--edge-account does not allow the ServiceAccount %s without a group", i.Account)}
	}
	return link.Refusal{Reason: fmt.Sprintf("--edge-account does not allow the ServiceAccount %s with the group %s", i.Account, i.Group)}
}

func refuse(format string, values ...any) (link.Identity, error) {
	return link.Identity{}, link.Refusal{Reason: strings.TrimSuffix(fmt.Sprintf(format, values...), ": ")}
}

// accountOf reads the name of a user who is a ServiceAccount.
func accountOf(user string) (types.NamespacedName, bool) {
	rest, isAccount := strings.CutPrefix(user, userPrefix)
	namespace, name, both := strings.Cut(rest, ":")
	ok := isAccount && both && namespace != "" && name != "" && !strings.Contains(name, ":")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok
}

// allowed names the accounts.
func (r *Reviewer) allowed() string {
	var list []string
	for account := range maps.Keys(r.Accounts) {
		list = append(list, account.String())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
