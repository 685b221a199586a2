{{- /* The arguments of the controller */ -}}
{{- define "headgate.args" -}}
{{- $c := .Values.controller }}
{{- $part := include "headgate.part" . }}
- /nginx-ingress-controller
{{- if ne $part "all" }}
- {{ $part }}
{{- include (printf "headgate.%sArgs" $part) . }}
{{- end }}
{{- if ne $part "edge" }}
{{- include "headgate.clusterArgs" . }}
{{- include "headgate.webhookArgs" . }}
{{- end }}
{{- with $c.healthCheckHost }}
- --healthz-host={{ . }}
{{- end }}
{{- if ne $c.healthCheckPath "/healthz" }}
- --health-check-path={{ $c.healthCheckPath }}
{{- end }}
{{- if ne $part "edge" }}
{{- if $c.ingressClassByName }}
- --ingress-class-by-name=true
{{- end }}
{{- if $c.watchIngressWithoutClass }}
- --watch-ingress-without-class=true
{{- end }}
{{- end }}
{{- if $c.metrics.enabled }}
- --enable-metrics=true
{{- end }}
{{- if include "headgate.topology" . }}
- --enable-topology-aware-routing=true
{{- end }}
{{- if ne $part "edge" }}
{{- if $c.disableLeaderElection }}
- --disable-leader-election=true
{{- end }}
{{- with $c.electionTTL }}
- --election-ttl={{ . }}
{{- end }}
{{- end }}
{{- if $c.maxmindLicenseKey }}
{{- if ne $part "control" }}
- {{ printf "--maxmind-license-key=%s" $c.maxmindLicenseKey | quote }}
{{- end }}
{{- end }}
{{- include "headgate.extraArgs" $c.extraArgs }}
{{- end }}

{{- /* Which objects to read, and where to write */ -}}
{{- define "headgate.clusterArgs" -}}
{{- $c := .Values.controller }}
{{- if .Values.defaultBackend.enabled }}
- --default-backend-service=$(POD_NAMESPACE)/{{ include "headgate.defaultBackend" . }}
{{- end }}
{{- with include "headgate.published" . }}
- --publish-service={{ . }}
{{- end }}
- --election-id={{ include "headgate.electionID" . }}
- --controller-class={{ $c.ingressClassResource.controllerValue }}
{{- with $c.ingressClass }}
- --ingress-class={{ . }}
{{- end }}
- --configmap={{ $c.configMapNamespace | default "$(POD_NAMESPACE)" }}/{{ include "headgate.controller" . }}
{{- if .Values.tcp }}
- --tcp-services-configmap={{ $c.tcp.configMapNamespace | default "$(POD_NAMESPACE)" }}/{{ include "headgate.fullname" . }}-tcp
{{- end }}
{{- if .Values.udp }}
- --udp-services-configmap={{ $c.udp.configMapNamespace | default "$(POD_NAMESPACE)" }}/{{ include "headgate.fullname" . }}-udp
{{- end }}
{{- if $c.scope.enabled }}
- --watch-namespace={{ $c.scope.namespace | default "$(POD_NAMESPACE)" }}
{{- else if $c.scope.namespaceSelector }}
- --watch-namespace-selector={{ $c.scope.namespaceSelector }}
{{- end }}
{{- if and $c.reportNodeInternalIp $c.hostNetwork }}
- --report-node-internal-ip-address=true
{{- end }}
{{- end }}

{{- /* A control has no zone: edges may be in others. */ -}}
{{- define "headgate.topology" -}}
{{- if and .Values.controller.enableTopologyAwareRouting (eq (include "headgate.part" .) "all") }}true{{ end }}
{{- end }}

{{- define "headgate.webhookArgs" -}}
{{- $root := . }}
{{- with .Values.controller.admissionWebhooks }}
{{- if .enabled }}
- --validating-webhook=:{{ .port }}
{{- if .selfSigned.enabled }}
- --webhook-self-signed=true
- --webhook-configuration={{ include "headgate.webhook" $root }}
- --webhook-service=$(POD_NAMESPACE)/{{ include "headgate.webhookService" $root }}
- --webhook-secret=$(POD_NAMESPACE)/{{ include "headgate.webhook" $root }}
{{- else }}
- --validating-webhook-certificate={{ .certificate }}
- --validating-webhook-key={{ .key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Flags of a map; those without a value stand alone */ -}}
{{- define "headgate.extraArgs" -}}
{{- range $flag, $value := . }}
{{- $text := include "headgate.text" $value }}
{{- if eq $text "" }}
- --{{ $flag }}
{{- else }}
- {{ printf "--%s=%s" $flag $text | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The keys of the ConfigMap with Headgate's options */ -}}
{{- define "headgate.config" -}}
{{- $c := .Values.controller }}
{{- $namespace := include "headgate.namespace" . }}
{{- $fullname := include "headgate.fullname" . }}
{{- $data := dict "allow-snippet-annotations" ($c.allowSnippetAnnotations | toString) }}
{{- if $c.addHeaders }}{{ $_ := set $data "add-headers" (printf "%s/%s-custom-add-headers" $namespace $fullname) }}{{ end }}
{{- if $c.proxySetHeaders }}{{ $_ := set $data "proxy-set-headers" (printf "%s/%s-custom-proxy-headers" $namespace $fullname) }}{{ end }}
{{- if .Values.dhParam }}{{ $_ := set $data "ssl-dh-param" (printf "%s/%s" $namespace (include "headgate.controller" .)) }}{{ end }}
{{- range $key, $value := $c.config }}{{ $_ := set $data $key (tpl (include "headgate.text" $value) $) }}{{ end }}
{{- include "headgate.texts" $data }}
{{- end }}
