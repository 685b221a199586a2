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

{{- /* What keeps and scales the pods of a part */ -}}
{{- define "headgate.scaling" -}}
{{- $c := .Values.controller }}
{{- $name := include "headgate.workload" . }}
{{- $component := include "headgate.component" . }}
{{- if eq $c.kind "Deployment" }}
{{- if and $c.autoscaling.enabled $c.keda.enabled }}{{ fail "controller.autoscaling.enabled and controller.keda.enabled exclude each other" }}{{ end }}
{{- $replicas := $c.replicaCount }}
{{- if $c.autoscaling.enabled }}{{ $replicas = $c.autoscaling.minReplicas }}{{ end }}
{{- if $c.keda.enabled }}{{ $replicas = $c.keda.minReplicas }}{{ end }}
{{- if gt (int $replicas) 1 }}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "headgate.metadata" (dict "root" . "name" $name "component" $component "labels" $c.labels) }}
spec:
  {{- include "headgate.disruption" (dict "of" $c) | nindent 2 }}
  selector:
    matchLabels:
      {{- include "headgate.selector" (dict "root" . "component" $component) | nindent 6 }}
{{- end }}
{{- with $c.autoscaling }}
{{- if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
{{ include "headgate.metadata" (dict "root" $ "name" $name "component" $component "labels" $c.labels "annotations" .annotations) }}
spec:
  {{- include "headgate.scaler" (dict "name" $name "of" . "more" $c.autoscalingTemplate) | nindent 2 }}
  {{- with .behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
{{- with $c.keda }}
{{- if .enabled }}
---
apiVersion: {{ .apiVersion }}
kind: ScaledObject
{{ include "headgate.metadata" (dict "root" $ "name" $name "component" $component "labels" $c.labels "annotations" .scaledObject.annotations) }}
spec:
  scaleTargetRef:
    {{- if eq .apiVersion "keda.k8s.io/v1alpha1" }}
    deploymentName: {{ $name }}
    {{- else }}
    name: {{ $name }}
    {{- end }}
  pollingInterval: {{ .pollingInterval }}
  cooldownPeriod: {{ .cooldownPeriod }}
  minReplicaCount: {{ .minReplicas }}
  maxReplicaCount: {{ .maxReplicas }}
  {{- with .fallback }}
  fallback:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  advanced:
    restoreToOriginalReplicaCount: {{ .restoreToOriginalReplicaCount }}
    {{- with .behavior }}
    horizontalPodAutoscalerConfig:
      behavior:
        {{- toYaml . | nindent 8 }}
    {{- end }}
  triggers:
  {{- toYaml .triggers | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
