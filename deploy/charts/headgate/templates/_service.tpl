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
{{- if and $service.enableHttps (include "headgate.http3" .root) }}
- name: http3
  port: {{ .ports.https }}
  protocol: UDP
  targetPort: {{ ternary "http3" .targetPorts.https (eq (toString .targetPorts.https) "https") }}
  {{- with $nodes.https }}
  nodePort: {{ . }}
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
