{{- /* The limits of a PodDisruptionBudget: of */ -}}
{{- define "headgate.disruption" -}}
{{- if .of.maxUnavailable }}
maxUnavailable: {{ .of.maxUnavailable }}
{{- else }}
minAvailable: {{ .of.minAvailable }}
{{- end }}
{{- with .of.unhealthyPodEvictionPolicy }}
unhealthyPodEvictionPolicy: {{ . }}
{{- end }}
{{- end }}

{{- /* What a HorizontalPodAutoscaler scales, and by which metrics: name, of, more */ -}}
{{- define "headgate.scaler" -}}
scaleTargetRef:
  apiVersion: apps/v1
  kind: Deployment
  name: {{ .name }}
minReplicas: {{ .of.minReplicas }}
maxReplicas: {{ .of.maxReplicas }}
metrics:
{{- range $resource, $share := dict "cpu" .of.targetCPUUtilizationPercentage "memory" .of.targetMemoryUtilizationPercentage }}
{{- if $share }}
- type: Resource
  resource:
    name: {{ $resource }}
    target:
      type: Utilization
      averageUtilization: {{ $share }}
{{- end }}
{{- end }}
{{- with .more }}
{{ toYaml . }}
{{- end }}
{{- end }}
