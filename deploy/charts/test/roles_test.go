package chart_test

import (
	"bytes"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// root is the folder of the repository.
const root = "../../.."

// A grant allows one verb on one resource: on all objects or the named one, in all namespaces or one.
type grant struct{ namespace, group, resource, name, verb string }

// in reports whether grants include it.
func (g grant) in(list []grant) bool {
	return slices.ContainsFunc(list, func(h grant) bool {
		return g.group == h.group && g.resource == h.resource && g.verb == h.verb &&
			(h.namespace == "" || h.namespace == g.namespace) && (h.name == "" || h.name == g.name)
	})
}

// grants are those of the roles among objects that are bound to a ServiceAccount.
func grants(t *testing.T, objects []*unstructured.Unstructured, account string) []grant {
	t.Helper()
	bound := map[string]bool{}
	for _, object := range objects {
		var binding rbacv1.RoleBinding
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
			continue
		}
		convert(t, object, &binding)
		if binding.Subjects[0].Name == account {
			bound[binding.RoleRef.Kind+" "+object.GetNamespace()+"/"+binding.RoleRef.Name] = true
		}
	}
	var list []grant
	for _, object := range objects {
		var role rbacv1.Role
		if !bound[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] {
			continue
		}
		convert(t, object, &role)
		for _, rule := range role.Rules {
			list = append(list, flatten(object.GetNamespace(), rule)...)
		}
	}
	return list
}

func flatten(namespace string, rule rbacv1.PolicyRule) (list []grant) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, resource := range rule.Resources {
		for _, verb := range rule.Verbs {
			for _, name := range names {
				list = append(list, grant{namespace, rule.APIGroups[0], resource, name, verb})
			}
		}
	}
	return list
}

func convert(t *testing.T, object *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, to); err != nil {
		t.Fatal(err)
	}
}

// controllerOf is the controller's DaemonSet or Deployment, with what both have.
func controllerOf(t *testing.T, r rendered) appsv1.Deployment {
	t.Helper()
	var workload appsv1.Deployment
	for _, object := range r.objects {
		if (object.GetKind() == "Deployment" || object.GetKind() == "DaemonSet") && object.GetLabels()["app.kubernetes.io/component"] == "controller" {
			convert(t, object, &workload)
		}
	}
	if workload.Name == "" {
		t.Fatal("there is no controller")
	}
	return workload
}

// readerOf is what reads Kubernetes: the controller, or with controller.mode=split the controls.
func readerOf(t *testing.T, r rendered) appsv1.Deployment {
	t.Helper()
	for _, w := range workloads(t, r) {
		if part(w) == "control" {
			return w
		}
	}
	return controllerOf(t, r)
}

// needed is what `headgate rbac` prints for the flags of a workload.
func needed(t *testing.T, program string, w appsv1.Deployment) []grant {
	t.Helper()
	pod := w.Spec.Template.Spec
	args := []string{"rbac"}
	for _, arg := range pod.Containers[0].Args[1:] {
		args = append(args, strings.ReplaceAll(arg, "$(POD_NAMESPACE)", w.Namespace))
	}
	args = append(args, "--namespace="+w.Namespace, "--service-account="+pod.ServiceAccountName)
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("headgate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	var objects []*unstructured.Unstructured
	for document := range bytes.SplitSeq(out, []byte("\n---\n")) {
		object, err := decode(string(document))
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, object)
	}
	return grants(t, objects, pod.ServiceAccountName)
}

// TestRoles: the roles grant what `headgate rbac` says that the program needs with the flags of
// the workload; by default and for controls, they grant nothing else. `headgate rbac` refuses unknown flags.
func TestRoles(t *testing.T) {
	program := filepath.Join(t.TempDir(), "headgate")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./cmd/headgate")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, b := range bases(t) {
		t.Run(b.name, func(t *testing.T) {
			workload := readerOf(t, b.result)
			want := needed(t, program, workload)
			got := grants(t, slices.Collect(maps.Values(b.result.objects)), workload.Spec.Template.Spec.ServiceAccountName)
			if leaf([]string{"rbac", "create"}).of(b.values) == false {
				if len(got) != 0 {
					t.Error("roles in spite of rbac.create=false")
				}
				return
			}
			// Without a ClusterRole, Headgate does without what is in none of its namespaces.
			scoped := leaf([]string{"rbac", "scope"}).of(b.values) == true
			for _, g := range want {
				if !g.in(got) && !(scoped && g.namespace == "") {
					t.Errorf("%+v is not granted", g)
				}
			}
			exact := b.name == "default" || b.name == "split" || b.name == "split-groups"
			for _, g := range got {
				if part(workload) == "control" && g.resource == "pods" {
					// A control leaves the addresses of Ingresses when it ends, so it need not look for others.
					continue
				}
				if exact && !g.in(want) {
					t.Errorf("%+v is granted, but not needed", g)
				}
			}
		})
	}
}
