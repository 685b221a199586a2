package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// account is Headgate's ServiceAccount, and the FlowSchema by which the API
// server counts its requests.
const account = "headgate"

// createAccount gives Headgate the account that it has in a cluster, and no
// more than it needs.
func (k *kube) createAccount(ctx context.Context) error {
	if _, err := k.client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta(account)}, metav1.CreateOptions{}); err != nil {
		return err
	}
	follow := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "services"}, Verbs: follow},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: follow},
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: follow},
	}}
	if _, err := k.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
	if _, err := k.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := k.client.FlowcontrolV1().FlowSchemas().Create(ctx, flowSchema(), metav1.CreateOptions{}); err != nil {
		return err
	}
	return k.writeKubeconfig(ctx)
}

// flowSchema treats Headgate's requests as the built-in one for ServiceAccounts
// does, but the API server counts them apart.
func flowSchema() *flowcontrolv1.FlowSchema {
	const beforeServiceAccounts = 8000
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "workload-low"},
			MatchingPrecedence:         beforeServiceAccounts,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind:           flowcontrolv1.SubjectKindServiceAccount,
					ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: namespace, Name: account},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
					Namespaces: []string{"*"}, ClusterScope: true,
				}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
			}},
		},
	}
}

func (k *kube) writeKubeconfig(ctx context.Context) error {
	const lifetime = 24 * 60 * 60
	seconds := int64(lifetime)
	token, err := k.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	server := k.Config()
	if err := rest.LoadTLSFiles(server); err != nil {
		return err
	}
	config := api.Config{
		Clusters:       map[string]*api.Cluster{account: {Server: server.Host, CertificateAuthorityData: server.CAData}},
		AuthInfos:      map[string]*api.AuthInfo{account: {Token: token.Status.Token}},
		Contexts:       map[string]*api.Context{account: {Cluster: account, AuthInfo: account}},
		CurrentContext: account,
	}
	text, err := clientcmd.Write(config)
	if err != nil {
		return err
	}
	k.kubeconfig = filepath.Join(k.stage.dir, "kubeconfig")
	return os.WriteFile(k.kubeconfig, text, 0o600)
}

// requests is how many of Headgate's requests the API server has begun to
// serve: lists, watches and the rest alike.
func (k *kube) requests(ctx context.Context) (int, error) {
	text, err := k.client.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	total := 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		rest, found := strings.CutPrefix(lines.Text(), "apiserver_flowcontrol_dispatched_requests_total{")
		labels, value, _ := strings.Cut(rest, "} ")
		if !found || !strings.Contains(labels, `flow_schema="`+account+`"`) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("read the API server's metrics: %w", err)
		}
		total += int(n)
	}
	return total, nil
}
