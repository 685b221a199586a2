{{- /* Values that are set and have no effect, one a line */ -}}
{{- define "headgate.withoutEffect" -}}
{{- $c := .Values.controller }}
{{- if or $c.image.chroot $c.image.digestChroot }}
controller.image.chroot, controller.image.digestChroot: NGINX runs in no chroot
{{- end }}
{{- if not $c.enableAnnotationValidations }}
controller.enableAnnotationValidations: values are always parsed
{{- end }}
{{- if or $c.customTemplate.configMapName $c.customTemplate.configMapKey }}
controller.customTemplate: nginx.conf is not made from a template
{{- end }}
{{- if $c.extraModules }}
controller.extraModules: Headgate loads its own modules of NGINX only
{{- end }}
{{- if $c.opentelemetry }}
controller.opentelemetry: removed from ingress-nginx
{{- end }}
{{- if or $c.existingPsp .Values.podSecurityPolicy.enabled }}
controller.existingPsp, podSecurityPolicy: removed from Kubernetes
{{- end }}
{{- if and $c.reportNodeInternalIp (not $c.hostNetwork) }}
controller.reportNodeInternalIp: only with controller.hostNetwork
{{- end }}
{{- if and $c.hostPort.enabled (include "headgate.http3" .) }}
controller.hostPort, for HTTP/3: it needs controller.hostNetwork or a Service
{{- end }}
{{- if eq $c.mode "split" }}
{{- if $c.enableTopologyAwareRouting }}
controller.enableTopologyAwareRouting: with controller.mode=split, edges have zones of their own
{{- end }}
{{- else }}
{{- if or $c.control.certificateSecret $c.edge.certificateSecret $c.edge.groups }}
controller.control, controller.edge: only with controller.mode=split
{{- end }}
{{- end }}
{{- if and $c.networkPolicy.apiServerCIDRs (not (and $c.networkPolicy.enabled (eq $c.mode "split"))) }}
controller.networkPolicy.apiServerCIDRs: only with controller.mode=split and controller.networkPolicy.enabled
{{- end }}
{{- if and $c.publishService.enabled (not (include "headgate.published" .)) }}
controller.publishService: there is no Service. Ingresses get the addresses of nodes.
{{- end }}
{{- if and $c.scope.enabled $c.scope.namespaceSelector }}
controller.scope.namespaceSelector: only without controller.scope.enabled
{{- end }}
{{- if and (eq $c.kind "Deployment") (or $c.autoscaling.enabled $c.keda.enabled) (ne (int $c.replicaCount) 1) }}
controller.replicaCount: autoscaling decides
{{- end }}
{{- $watched := include "headgate.watched" . }}
{{- if and .Values.defaultBackend.enabled $watched (ne $watched (include "headgate.namespace" .)) }}
defaultBackend: with controller.scope, Headgate reads the Services of controller.scope.namespace alone
{{- end }}
{{- include "headgate.daemonSetWithoutEffect" $c }}
{{- include "headgate.foreignConfig" . }}
{{- include "headgate.unsupported" . }}
{{- if not $c.metrics.enabled }}
{{- range list "serviceMonitor" "prometheusRule" "dashboards" }}
{{- if (index $c.metrics .).enabled }}
controller.metrics.{{ . }}: only with controller.metrics.enabled
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headgate.daemonSetWithoutEffect" -}}
{{- if eq .kind "DaemonSet" }}
{{- if ne (int .replicaCount) 1 }}
controller.replicaCount: a DaemonSet has a pod on each node
{{- end }}
{{- if or .autoscaling.enabled .keda.enabled }}
controller.autoscaling, controller.keda: a DaemonSet has a pod on each node
{{- end }}
{{- if .progressDeadlineSeconds }}
controller.progressDeadlineSeconds: of Deployments only
{{- end }}
{{- end }}
{{- end }}

{{- /* Values of a ConfigMap that is not made, since it is in another namespace */ -}}
{{- define "headgate.foreignConfig" -}}
{{- $c := .Values.controller }}
{{- if $c.configMapNamespace }}
{{- $set := dict "controller.config" (omit $c.config "use-http3") "controller.configAnnotations" $c.configAnnotations
  "controller.allowSnippetAnnotations" $c.allowSnippetAnnotations "controller.addHeaders" $c.addHeaders
  "controller.proxySetHeaders" $c.proxySetHeaders "dhParam" .Values.dhParam }}
{{- range $name, $value := $set }}
{{- if $value }}
{{ $name }}: with controller.configMapNamespace, the chart makes no ConfigMap with options
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Keys of the ConfigMap and flags that Headgate does not have, by files/supported.yaml */ -}}
{{- define "headgate.unsupported" -}}
{{- $known := .Files.Get "files/supported.yaml" | fromYaml }}
{{- $values := dict "add-headers" "controller.addHeaders" "proxy-set-headers" "controller.proxySetHeaders" "ssl-dh-param" "dhParam" }}
{{- range $key, $_ := include "headgate.ownConfig" . | fromYaml }}
{{- if not (has $key $known.keys) }}
{{- $own := not (hasKey $.Values.controller.config $key) }}
{{ ternary (get $values $key) (printf "controller.config.%s" $key) $own }}: Headgate has no key {{ $key }}
{{- end }}
{{- end }}
{{- range $flag, $_ := .Values.controller.extraArgs }}
{{- with get $known.flags $flag }}
controller.extraArgs.{{ $flag }}: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The keys of the ConfigMap, if the chart makes it */ -}}
{{- define "headgate.ownConfig" -}}
{{- if not .Values.controller.configMapNamespace }}
{{- include "headgate.config" . }}
{{- end }}
{{- end }}
