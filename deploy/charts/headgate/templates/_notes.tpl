{{- /* Values that are set and have no effect, one a line */ -}}
{{- define "headgate.withoutEffect" -}}
{{- $c := .Values.controller }}
{{- if or $c.image.chroot $c.image.digestChroot }}
controller.image.chroot, controller.image.digestChroot: NGINX runs in no chroot
{{- end }}
{{- if not $c.enableAnnotationValidations }}
controller.enableAnnotationValidations: values are always parsed
{{- end }}
{{- if $c.maxmindLicenseKey }}
controller.maxmindLicenseKey: GeoIP is not implemented yet
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
{{- if and $c.publishService.enabled (not (include "headgate.published" .)) }}
controller.publishService: there is no Service. Ingresses get the addresses of nodes.
{{- end }}
{{- if and $c.scope.enabled $c.scope.namespaceSelector }}
controller.scope.namespaceSelector: only without controller.scope.enabled
{{- end }}
{{- include "headgate.daemonSetWithoutEffect" $c }}
{{- if not $c.metrics.enabled }}
{{- range list "serviceMonitor" "prometheusRule" }}
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

{{- /* The ports of a node that need a capability which users other than root don't have in a container */ -}}
{{- define "headgate.lowPorts" -}}
{{- $low := list }}
{{- if and .Values.controller.hostNetwork (int .Values.controller.image.runAsUser) }}
{{- range .Values.controller.containerPort }}
{{- if lt (int .) 1024 }}{{ $low = append $low (int . | toString) }}{{ end }}
{{- end }}
{{- end }}
{{- join ", " $low }}
{{- end }}
