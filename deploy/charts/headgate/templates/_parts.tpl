{{- /* With controller.mode=split, pods are those of a part: `control`, or `edge` of a group or of none. Their templates are those
  of pods with all of Headgate, with other values of `controller`, and with `part` and `group` beside Values: "headgate.asControl",
  "headgate.asEdge". */ -}}

{{- /* Makes the root of templates that of the controls: into */ -}}
{{- define "headgate.asControl" -}}
{{- $c := deepCopy .into.Values.controller }}
{{- $off := dict "enabled" false }}
{{- $own := omit $c.control "port" "certificateSecret" "service" "extraArgs" "extraEnvs" }}
{{- $fixed := dict "kind" "Deployment" "containerName" "control" "containerPort" (dict "edges" $c.control.port)
  "hostPort" $off "autoscaling" $off "keda" $off "sysctls" dict "hostname" dict "shareProcessNamespace" false "lifecycle" dict
  "extraContainers" list "extraInitContainers" list "extraEnvs" (concat $c.extraEnvs $c.control.extraEnvs) }}
{{- range list $own $fixed }}
{{- range $key, $value := . }}{{ $_ := set $c $key $value }}{{ end }}
{{- end }}
{{- /* The last control of a release that returns to all-in-one must not remove the addresses of Ingresses. It does not, while
  there are edges; pods with all of Headgate are none. */ -}}
{{- $flags := dict "update-status-on-shutdown" "false" }}
{{- include "headgate.override" (dict "into" $flags "by" $c.extraArgs) }}
{{- include "headgate.override" (dict "into" $flags "by" $c.control.extraArgs) }}
{{- $_ := set $c "extraArgs" $flags }}
{{- $_ := set .into "part" "control" }}
{{- $_ := set .into "Values" (set (omit .into.Values "controller") "controller" $c) }}
{{- end }}

{{- /* Makes the root of templates that of edges: into, and optionally group (its values) */ -}}
{{- define "headgate.asEdge" -}}
{{- $c := deepCopy .into.Values.controller }}
{{- include "headgate.override" (dict "into" $c.extraArgs "by" $c.edge.extraArgs) }}
{{- with .group }}
{{- range $service := list $c.service $c.service.internal }}
{{- $none := dict "annotations" dict "clusterIP" "" "clusterIPs" list "externalIPs" list "loadBalancerIP" "" "healthCheckNodePort" 0
  "nodePorts" (dict "http" "" "https" "" "tcp" dict "udp" dict) }}
{{- range $key, $value := $none }}{{ $_ := set $service $key $value }}{{ end }}
{{- range $key, $value := dict "annotations" dict "loadBalancerIP" "" "nodePort" "" }}{{ $_ := set $service.http3 $key $value }}{{ end }}
{{- end }}
{{- include "headgate.override" (dict "into" $c "by" (omit . "name" "certificateSecret")) }}
{{- $_ := set $c.edge "certificateSecret" .certificateSecret }}
{{- $_ := set $.into "group" .name }}
{{- end }}
{{- $_ := set .into "Values" (set (omit .into.Values "controller") "controller" $c) }}
{{- end }}

{{- /* Sets values, also empty ones, as a further values file does: into, by */ -}}
{{- define "headgate.override" -}}
{{- range $key, $value := .by }}
{{- $old := get $.into $key }}
{{- if and (kindIs "map" $old) (kindIs "map" $value) }}
{{- include "headgate.override" (dict "into" $old "by" $value) }}
{{- else }}
{{- $_ := set $.into $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headgate.checkMode" -}}
{{- $c := .Values.controller }}
{{- if eq $c.mode "split" }}
{{- if ne (empty $c.control.certificateSecret) (empty $c.edge.certificateSecret) }}{{ fail "controller.control.certificateSecret and controller.edge.certificateSecret need each other" }}{{ end }}
{{- if eq (include "headgate.controller" .) (include "headgate.control" .) }}{{ fail "controller.name must not be control with controller.mode=split" }}{{ end }}
{{- if and .Values.rbac.scope (include "headgate.tokens" .) }}{{ fail "controller.mode=split needs a ClusterRole, for the tokens of edges: rbac.scope must be false, or controller.control.certificateSecret set" }}{{ end }}
{{- if and .Values.rbac.scope $c.edge.groups }}{{ fail "controller.edge.groups needs a ClusterRole, for the annotations of namespaces: rbac.scope must be false" }}{{ end }}
{{- $names := list "default" }}
{{- range $c.edge.groups }}
{{- if not (regexMatch "^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$" .name) }}{{ fail (printf "controller.edge.groups: the name %q must be a DNS label with at most 30 characters" .name) }}{{ end }}
{{- if has .name $names }}{{ fail (printf "controller.edge.groups: there are two groups %s; that of the edges without a group is default" .name) }}{{ end }}
{{- if ne (empty $c.edge.certificateSecret) (empty .certificateSecret) }}{{ fail (printf "controller.edge.groups: group %s and the other edges must both have a certificateSecret, or neither: it names the group" .name) }}{{ end }}
{{- $names = append $names .name }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether edges show tokens, and the controls are their own authority */ -}}
{{- define "headgate.tokens" -}}
{{- with .Values.controller }}
{{- if and (eq .mode "split") (not .control.certificateSecret) }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Whether edges have groups */ -}}
{{- define "headgate.groups" -}}
{{- with .Values.controller }}
{{- if and (eq .mode "split") .edge.groups }}true{{ end }}
{{- end }}
{{- end }}

{{- define "headgate.controlArgs" -}}
{{- $c := .Values.controller }}
- --edge-address=:{{ $c.control.port }}
- --edge-account=$(POD_NAMESPACE)/{{ include "headgate.edgeAccount" . }}{{ if $c.edge.groups }}=default{{ end }}
{{- range $c.edge.groups }}
- --edge-account=$(POD_NAMESPACE)/{{ include "headgate.edgeAccount" (dict "Values" $.Values "Chart" $.Chart "Release" $.Release "group" .name) }}={{ .name }}
{{- end }}
{{- if include "headgate.tokens" . }}
- --edge-authority=$(POD_NAMESPACE)/{{ include "headgate.authority" . }}
{{- else }}
- --edge-certificate=/etc/headgate/edges/tls.crt
- --edge-key=/etc/headgate/edges/tls.key
- --edge-ca=/etc/headgate/edges/ca.crt
{{- end }}
{{- end }}

{{- define "headgate.edgeArgs" }}
- --control-address={{ include "headgate.control" . }}.$(POD_NAMESPACE).svc:{{ .Values.controller.control.port }}
- --control-ca=/etc/headgate/control/ca.crt
{{- if include "headgate.tokens" . }}
- --control-token=/etc/headgate/control/token
{{- else }}
- --control-certificate=/etc/headgate/control/tls.crt
- --control-key=/etc/headgate/control/tls.key
{{- end }}
- --state-dir=/var/lib/headgate/state
{{- end }}

{{- define "headgate.partMounts" -}}
{{- $part := include "headgate.part" . }}
{{- if eq $part "edge" }}
- name: headgate-control
  mountPath: /etc/headgate/control
  readOnly: true
- name: headgate-state
  mountPath: /var/lib/headgate
{{- else if and (eq $part "control") (not (include "headgate.tokens" .)) }}
- name: headgate-edges
  mountPath: /etc/headgate/edges
  readOnly: true
{{- end }}
{{- end }}

{{- define "headgate.partVolumes" -}}
{{- $c := .Values.controller }}
{{- $part := include "headgate.part" . }}
{{- if eq $part "edge" }}
- name: headgate-control
  {{- if include "headgate.tokens" . }}
  projected:
    sources:
    - serviceAccountToken:
        audience: headgate-control
        expirationSeconds: 3600
        path: token
    - configMap:
        name: {{ include "headgate.authority" . }}
        items:
        - {key: ca.crt, path: ca.crt}
  {{- else }}
  secret:
    secretName: {{ $c.edge.certificateSecret }}
  {{- end }}
# In memory: it has private keys.
- name: headgate-state
  emptyDir:
    medium: Memory
    sizeLimit: {{ $c.edge.stateSizeLimit }}
{{- else if and (eq $part "control") (not (include "headgate.tokens" .)) }}
- name: headgate-edges
  secret:
    secretName: {{ $c.control.certificateSecret }}
{{- end }}
{{- end }}

{{- /* The label by which one Service finds what has metrics: controls and edges */ -}}
{{- define "headgate.scrapedLabel" -}}
{{- if and (eq .Values.controller.mode "split") .Values.controller.metrics.enabled }}headgate.io/metrics: "true"{{ end }}
{{- end }}

{{- /* The ServiceAccount of edges, which may do nothing */ -}}
{{- define "headgate.edgeAccountObject" -}}
apiVersion: v1
kind: ServiceAccount
{{ include "headgate.metadata" (dict "root" . "name" (include "headgate.edgeAccount" .) "component" (include "headgate.component" .) "annotations" .Values.controller.edge.serviceAccount.annotations) }}
automountServiceAccountToken: false
{{- end }}

{{- /* Selects the edges of all groups */ -}}
{{- define "headgate.edgeSelector" -}}
matchLabels:
  {{- omit (include "headgate.selector" (dict "root" . "component" "") | fromYaml) "app.kubernetes.io/component" | toYaml | nindent 2 }}
matchExpressions:
- key: app.kubernetes.io/component
  operator: In
  values: [controller, edge]
{{- end }}

{{- /* Where edges connect to: the controls, DNS, and backends anywhere but at the API servers */ -}}
{{- define "headgate.edgeEgress" -}}
- ports:
  - protocol: TCP
    port: {{ .Values.controller.control.port }}
  to:
  - podSelector:
      matchLabels:
        {{- include "headgate.selector" (dict "root" . "component" "control") | nindent 8 }}
- ports:
  - protocol: UDP
    port: 53
  - protocol: TCP
    port: 53
- to:
  # Pods are not addresses for all networks.
  - namespaceSelector: {}
  {{- range $all, $mark := dict "0.0.0.0/0" "." "::/0" ":" }}
  {{- $except := list }}
  {{- range $.Values.controller.networkPolicy.apiServerCIDRs }}
  {{- if eq (contains ":" .) (eq $mark ":") }}{{ $except = append $except . }}{{ end }}
  {{- end }}
  - ipBlock:
      cidr: {{ $all | quote }}
      {{- with $except }}
      except:
      {{- toYaml . | nindent 6 }}
      {{- end }}
  {{- end }}
{{- end }}
