{{- /* A Role with its binding, or a ClusterRole without a namespace: root, name, account, component, rules, namespace, annotations */ -}}
{{- define "headgate.role" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") }}
{{- $head := dict "root" .root "name" .name "component" .component "namespace" .namespace "cluster" (not (hasKey . "namespace")) "annotations" .annotations }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
{{ include "headgate.metadata" $head }}
rules:
{{ toYaml .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
{{ include "headgate.metadata" $head }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ include "headgate.namespace" .root }}
{{- end }}

{{- /* What Headgate reads and writes of the objects that it serves */ -}}
{{- define "headgate.servedRules" -}}
- apiGroups: [""]
  resources: [configmaps, secrets, services]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [get, list, watch]
- apiGroups: [networking.k8s.io]
  resources: [ingresses/status]
  verbs: [update]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{- /* Objects without a namespace */ -}}
{{- define "headgate.clusterRules" -}}
{{- $c := .Values.controller }}
- apiGroups: [networking.k8s.io]
  resources: [ingressclasses]
  verbs: [list, watch]
{{- if include "headgate.topology" . }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- else if not (include "headgate.published" .) }}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get]
{{- end }}
{{- if or (and $c.scope.namespaceSelector (not $c.scope.enabled)) (include "headgate.groups" .) }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch]
{{- end }}
{{- if and $c.admissionWebhooks.enabled $c.admissionWebhooks.selfSigned.enabled }}
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "headgate.webhook" . }}]
  verbs: [get, update]
{{- end }}
{{- if include "headgate.tokens" . }}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- end }}

{{- /* Headgate's own namespace */ -}}
{{- define "headgate.ownRules" -}}
{{- $c := .Values.controller }}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list]
{{- if not $c.disableLeaderElection }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ include "headgate.electionID" . }}]
  verbs: [get, update]
{{- end }}
{{- if and $c.admissionWebhooks.enabled $c.admissionWebhooks.selfSigned.enabled }}
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets]
  resourceNames: [{{ include "headgate.webhook" . }}]
  verbs: [get, update]
{{- end }}
{{- if include "headgate.tokens" . }}
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [create]
- apiGroups: [""]
  resources: [secrets, configmaps]
  resourceNames: [{{ include "headgate.authority" . }}]
  verbs: [get, update]
{{- end }}
{{- end }}

{{- /* A namespace with ConfigMaps or the Service of Headgate, which is not served */ -}}
{{- define "headgate.besideRules" -}}
- apiGroups: [""]
  resources: [configmaps, services]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}
