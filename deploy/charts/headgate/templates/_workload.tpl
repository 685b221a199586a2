{{- /* The Deployment or DaemonSet of a part */ -}}
{{- define "headgate.workloadObject" -}}
{{- $c := .Values.controller }}
apiVersion: apps/v1
kind: {{ $c.kind }}
{{ include "headgate.metadata" (dict "root" . "name" (include "headgate.workload" .) "component" (include "headgate.component" .) "labels" $c.labels "annotations" $c.annotations) }}
spec:
  {{- if eq $c.kind "Deployment" }}
  {{- if not (or $c.autoscaling.enabled $c.keda.enabled) }}
  replicas: {{ $c.replicaCount }}
  {{- end }}
  {{- with $c.progressDeadlineSeconds }}
  progressDeadlineSeconds: {{ . }}
  {{- end }}
  {{- with $c.updateStrategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- else }}
  {{- with $c.updateStrategy }}
  updateStrategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- include "headgate.pods" . | nindent 2 }}
{{- end }}
