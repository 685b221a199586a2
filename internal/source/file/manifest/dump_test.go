package manifest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The items of a dump as kubectl prints them; %[1]d is a number.
var dumpItems = []struct {
	share int // how many of them in a round
	taken bool
	text  string
}{
	{1, true, `- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"annotations":{},"name":"web-%[1]d"}}
    creationTimestamp: "2024-05-01T10:00:00Z"
    generation: 1
    name: web-%[1]d
    namespace: default
    resourceVersion: "%[1]d"
    uid: 3b1f1a6e-0000-4000-8000-000000000000
  spec:
    ingressClassName: nginx
    rules:
    - host: web-%[1]d.example.com
      http:
        paths:
        - backend:
            service:
              name: web-%[1]d
              port:
                number: 80
          path: /
          pathType: Prefix
  status:
    loadBalancer:
      ingress:
      - ip: 192.0.2.1
`},
	{1, true, `- apiVersion: v1
  data:
    settings.yaml: |
      # it's a text
      a: "b"

      c:
        - d: e
    greeting: "Grüße\n"
  kind: ConfigMap
  metadata:
    name: settings-%[1]d
    namespace: default
`},
	{2, true, `- apiVersion: v1
  kind: Service
  metadata:
    name: web-%[1]d
    namespace: default
  spec:
    clusterIP: 10.96.0.1
    clusterIPs:
    - 10.96.0.1
    internalTrafficPolicy: Cluster
    ipFamilies:
    - IPv4
    ports:
    - name: http
      port: 80
      protocol: TCP
      targetPort: 8080
    selector:
      app: web
    sessionAffinity: None
    type: ClusterIP
  status:
    loadBalancer: {}
`},
	{4, false, `- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      checksum/config: 01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b
    labels:
      app: web
    managedFields:
    - apiVersion: v1
      fieldsType: FieldsV1
      fieldsV1:
        f:metadata:
          f:labels:
            .: {}
            f:app: {}
        f:spec:
          f:containers:
            k:{"name":"web"}:
              .: {}
              f:image: {}
      manager: kube-controller-manager
      operation: Update
      time: "2024-05-01T10:00:00Z"
    name: web-%[1]d
    namespace: default
  spec:
    containers:
    - args:
      - --flag="a b"
      - -c
      - |
        set -e
        exec sleep "$((60 * 60))"
      env:
      - name: POD_IP
        valueFrom:
          fieldRef:
            apiVersion: v1
            fieldPath: status.podIP
      - name: TEXT
        value: 'it''s a text: quoted'
      image: registry.example.com/web@sha256:01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b
      livenessProbe:
        failureThreshold: 3
        httpGet:
          path: /healthz
          port: 8080
          scheme: HTTP
      resources:
        limits:
          cpu: 500m
          memory: 128Mi
  status:
    conditions:
    - lastProbeTime: null
      lastTransitionTime: "2024-05-01T10:00:00Z"
      message: 'containers with unready status: [web]'
      status: "True"
      type: Ready
    podIP: 10.244.0.7
`},
	{1, false, `- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata:
    name: things-%[1]d.example.com
  spec:
    group: example.com
    versions:
    - name: v1alpha1
      schema:
        openAPIV3Schema:
          description: Thing is a thing that doesn't fit into a line and is therefore
            folded into two.
          properties:
            apiVersion:
              description: |-
                APIVersion defines the versioned schema of this representation of an object.
                More info: https://example.com/"conventions"
              type: string
`},
}

// dump is a List as kubectl prints it, of at least so many bytes, as YAML and
// as JSON, and how many of its items are of a kind that is taken.
func dump(t testing.TB, size int) (asYAML, asJSON string, taken int) {
	t.Helper()
	var texts, values strings.Builder
	texts.WriteString("apiVersion: v1\nitems:\n")
	values.WriteString(`{"apiVersion": "v1", "items": [`)
	form := make([]string, len(dumpItems))
	for i, item := range dumpItems {
		text, err := yamlJSON([]byte(item.text))
		if err != nil {
			t.Fatal(err)
		}
		form[i] = strings.TrimSuffix(strings.TrimPrefix(string(text), "["), "]")
	}
	for n := 0; texts.Len() < size; n++ {
		for i, item := range dumpItems {
			for j := range item.share {
				fmt.Fprintf(&texts, item.text, 10*n+j)
				if values.WriteByte('\n'); taken > 0 {
					values.WriteByte(',')
				}
				fmt.Fprintf(&values, form[i], 10*n+j)
				if item.taken {
					taken++
				}
			}
		}
	}
	texts.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	values.WriteString(`], "kind": "List"}`)
	return texts.String(), values.String(), taken
}

func TestDump(t *testing.T) {
	asYAML, asJSON, taken := dump(t, 100_000)
	first := Decode([]byte(asYAML))
	second := Decode([]byte(asJSON))
	for _, c := range []Content{first, second} {
		if len(c.Objects) != taken || len(c.Flaws) > 0 || len(c.Duplicates) > 0 {
			t.Fatalf("%d objects, want %d; %v %v", len(c.Objects), taken, c.Flaws, c.Duplicates)
		}
	}
	for i, o := range first.Objects {
		if other := second.Objects[i]; o.Key != other.Key || !reflect.DeepEqual(o.Object, other.Object) {
			t.Fatalf("%v is\n%v\nin YAML and\n%v\nin JSON", o.Key, o.Object, other.Object)
		}
		if line := strings.Split(asYAML, "\n")[o.Line-1]; !strings.HasPrefix(line, "- apiVersion") {
			t.Fatalf("%v begins with %q", o.Key, line)
		}
	}
}

func BenchmarkDump(b *testing.B) {
	asYAML, asJSON, taken := dump(b, 50<<20)
	for name, text := range map[string]string{"yaml": asYAML, "json": asJSON} {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if c := Decode(data); len(c.Objects) != taken || len(c.Flaws) > 0 {
					b.Fatalf("%d objects, want %d; %v", len(c.Objects), taken, c.Flaws)
				}
			}
		})
	}
}
