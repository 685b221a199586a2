{{- /* The spec of a Service from values of the same names: only what is set */ -}}
{{- define "headgate.serviceSpec" -}}
{{- $spec := dict "type" .type }}
{{- $of := . }}
{{- range list "clusterIP" "clusterIPs" "externalIPs" "loadBalancerIP" "loadBalancerSourceRanges" "loadBalancerClass"
  "externalTrafficPolicy" "internalTrafficPolicy" "trafficDistribution" "sessionAffinity" "healthCheckNodePort" "ipFamilyPolicy" "ipFamilies" }}
{{- $value := index $of . }}
{{- if $value }}{{ $_ := set $spec . $value }}{{ end }}
{{- end }}
{{- if and (hasKey . "allocateLoadBalancerNodePorts") (not .allocateLoadBalancerNodePorts) (eq .type "LoadBalancer") }}
{{- $_ := set $spec "allocateLoadBalancerNodePorts" false }}
{{- end }}
{{- toYaml $spec }}
{{- end }}

{{- /* Whether NGINX speaks HTTP/3 */ -}}
{{- define "headgate.http3" -}}
{{- if eq (index .Values.controller.config "use-http3" | toString) "true" }}true{{ end }}
{{- end }}

{{- /* The ports of a Service for clients: root, ports, targetPorts, nodePorts, type, appProtocol */ -}}
{{- define "headgate.servicePorts" -}}
{{- $service := .root.Values.controller.service }}
{{- $nodes := ternary .nodePorts dict (or (eq .type "NodePort") (eq .type "LoadBalancer")) }}
{{- range $name := list "http" "https" }}
{{- if ternary $service.enableHttp $service.enableHttps (eq $name "http") }}
- name: {{ $name }}
  port: {{ index $.ports $name }}
  protocol: TCP
  targetPort: {{ index $.targetPorts $name }}
  {{- if $.appProtocol }}
  appProtocol: {{ $name }}
  {{- end }}
  {{- with index $nodes $name }}
  nodePort: {{ . }}
  {{- end }}
{{- end }}
{{- end }}
{{- range $protocol := list "tcp" "udp" }}
{{- range $port, $_ := index $.root.Values $protocol }}
{{- $name := include "headgate.streamName" (dict "root" $.root "port" $port "protocol" $protocol) }}
- name: {{ $name }}
  port: {{ $port }}
  protocol: {{ upper $protocol }}
  targetPort: {{ $name }}
  {{- with index (index $nodes $protocol | default dict) $port }}
  nodePort: {{ . }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The Service for HTTP/3 beside a Service for clients: root, name (of that one), of (its values), type, ports,
  targetPorts. It is one of its own: a Service with two ports of the same number, in two protocols, can lose one of them when it
  is updated. */ -}}
{{- define "headgate.http3Service" -}}
{{- $service := .root.Values.controller.service }}
{{- if and $service.enableHttps (include "headgate.http3" .root) }}
{{- $own := .of.http3 }}
{{- $type := $own.type | default .type }}
{{- $spec := omit .of "clusterIP" "clusterIPs" "healthCheckNodePort" | merge (dict "type" $type "loadBalancerIP" ($own.loadBalancerIP | default .of.loadBalancerIP)) }}
---
apiVersion: v1
kind: Service
{{ include "headgate.metadata" (dict "root" .root "name" (printf "%s-http3" .name) "component" (include "headgate.component" .root) "labels" (merge (dict) $own.labels $service.labels) "annotations" $own.annotations) }}
spec:
  {{- include "headgate.serviceSpec" $spec | nindent 2 }}
  ports:
  - name: http3
    port: {{ .ports.https }}
    protocol: UDP
    targetPort: {{ get .root.Values.controller.containerPort (toString .targetPorts.https) | default .targetPorts.https }}
    {{- if and $own.nodePort (ne $type "ClusterIP") }}
    nodePort: {{ $own.nodePort }}
    {{- end }}
  selector:
    {{- include "headgate.selector" (dict "root" .root "component" (include "headgate.component" .root)) | nindent 4 }}
{{- end }}
{{- end }}

{{- /* The Services for clients */ -}}
{{- define "headgate.clientServices" -}}
{{- $c := .Values.controller }}
{{- $name := include "headgate.workload" . }}
{{- $component := include "headgate.component" . }}
{{- $selector := include "headgate.selector" (dict "root" . "component" $component) }}
{{- with $c.service }}
{{- if and .enabled .external.enabled }}
apiVersion: v1
kind: Service
{{ include "headgate.metadata" (dict "root" $ "name" $name "component" $component "labels" (merge (dict) .external.labels .labels) "annotations" .annotations) }}
spec:
  {{- include "headgate.serviceSpec" . | nindent 2 }}
  ports:
  {{- include "headgate.servicePorts" (dict "root" $ "ports" .ports "targetPorts" .targetPorts "nodePorts" .nodePorts "type" .type "appProtocol" .appProtocol) | nindent 2 }}
  selector:
    {{- $selector | nindent 4 }}
{{ include "headgate.http3Service" (dict "root" $ "name" $name "of" . "type" .type "ports" .ports "targetPorts" .targetPorts) }}
{{- end }}
{{- if and .enabled .internal.enabled }}
{{- $type := .internal.type | default .type }}
{{- $ports := merge (dict) .internal.ports .ports }}
{{- $targetPorts := merge (dict) .internal.targetPorts .targetPorts }}
---
apiVersion: v1
kind: Service
{{ include "headgate.metadata" (dict "root" $ "name" (printf "%s-internal" $name) "component" $component "labels" (merge (dict) .internal.labels .labels) "annotations" .internal.annotations) }}
spec:
  {{- include "headgate.serviceSpec" (set (deepCopy .internal) "type" $type) | nindent 2 }}
  ports:
  {{- include "headgate.servicePorts" (dict "root" $ "ports" $ports "targetPorts" $targetPorts
    "nodePorts" .internal.nodePorts "type" $type "appProtocol" .internal.appProtocol) | nindent 2 }}
  selector:
    {{- $selector | nindent 4 }}
{{ include "headgate.http3Service" (dict "root" $ "name" (printf "%s-internal" $name) "of" .internal "type" $type "ports" $ports "targetPorts" $targetPorts) }}
{{- end }}
{{- end }}
{{- end }}
