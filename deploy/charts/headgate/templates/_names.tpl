{{- define "headgate.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "headgate.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "headgate.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "headgate.controller" -}}
{{- printf "%s-%s" (include "headgate.fullname" .) .Values.controller.name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* What the pods run: all of Headgate, or a control or an edge alone. Templates get `part` and `group`, or neither:
  templates/_parts.tpl. */ -}}
{{- define "headgate.part" -}}
{{- if eq .Values.controller.mode "split" }}{{ .part | default "edge" }}{{ else }}all{{ end }}
{{- end }}

{{- /* The name of what has the pods of a part */ -}}
{{- define "headgate.workload" -}}
{{- if eq .part "control" }}{{ include "headgate.control" . }}
{{- else if .group }}{{ include "headgate.suffixed" (dict "name" (include "headgate.controller" .) "suffix" .group) }}
{{- else }}{{ include "headgate.controller" . }}
{{- end }}
{{- end }}

{{- /* The label that selects these pods */ -}}
{{- define "headgate.component" -}}
{{- if eq .part "control" }}control{{ else if .group }}edge{{ else }}controller{{ end }}
{{- end }}

{{- define "headgate.control" -}}
{{- include "headgate.suffixed" (dict "name" (include "headgate.fullname" .) "suffix" "control") }}
{{- end }}

{{- /* The Secret and the ConfigMap with the authority of a control */ -}}
{{- define "headgate.authority" -}}
{{- include "headgate.suffixed" (dict "name" (include "headgate.fullname" .) "suffix" "edges") }}
{{- end }}

{{- /* A name that keeps its suffix, however long it is, and never is as long as one that was cut: name, suffix */ -}}
{{- define "headgate.suffixed" -}}
{{- printf "%s-%s" (.name | trunc (int (sub 61 (len .suffix))) | trimSuffix "-") .suffix }}
{{- end }}

{{- define "headgate.webhook" -}}
{{- printf "%s-%s" (include "headgate.fullname" .) .Values.controller.admissionWebhooks.name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "headgate.webhookService" -}}
{{- include "headgate.controller" . }}-{{ .Values.controller.admissionWebhooks.name }}
{{- end }}

{{- define "headgate.defaultBackend" -}}
{{- printf "%s-%s" (include "headgate.fullname" .) .Values.defaultBackend.name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "headgate.electionID" -}}
{{- .Values.controller.electionID | default (printf "%s-leader" (include "headgate.fullname" .)) }}
{{- end }}

{{- /* A ServiceAccount: of (its values), name (its default name) */ -}}
{{- define "headgate.serviceAccount" -}}
{{- if .of.create }}{{ .of.name | default .name }}{{ else }}{{ .of.name | default "default" }}{{ end }}
{{- end }}

{{- define "headgate.controllerAccount" -}}
{{- include "headgate.serviceAccount" (dict "of" .Values.serviceAccount "name" (include "headgate.fullname" .)) }}
{{- end }}

{{- define "headgate.edgeAccount" -}}
{{- $name := include "headgate.suffixed" (dict "name" (include "headgate.fullname" .) "suffix" "edge") }}
{{- if .group }}{{ $name = include "headgate.suffixed" (dict "name" $name "suffix" .group) }}{{ end }}
{{- $name }}
{{- end }}

{{- define "headgate.jobAccount" -}}
{{- include "headgate.serviceAccount" (dict "of" .Values.controller.admissionWebhooks.patch.serviceAccount "name" (include "headgate.webhook" .)) }}
{{- end }}

{{- define "headgate.defaultBackendAccount" -}}
{{- include "headgate.serviceAccount" (dict "of" .Values.defaultBackend.serviceAccount "name" (printf "%s-backend" (include "headgate.fullname" .))) }}
{{- end }}

{{- /* Labels that select pods: root, component */ -}}
{{- define "headgate.selector" -}}
app.kubernetes.io/name: {{ include "headgate.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- if and .root.group (eq .component "edge") }}
headgate.io/edge-group: {{ .root.group }}
{{- end }}
{{- end }}

{{- /* Labels of an object: root, component, more */ -}}
{{- define "headgate.labels" -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_")
  "app.kubernetes.io/version" .root.Chart.AppVersion
  "app.kubernetes.io/part-of" (include "headgate.name" .root)
  "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $selector := include "headgate.selector" . | fromYaml }}
{{- toYaml (mergeOverwrite (dict) .root.Values.commonLabels (.more | default dict) $own $selector) }}
{{- end }}

{{- /* Head of an object: root, name, component, and optionally namespace, labels, annotations */ -}}
{{- define "headgate.metadata" -}}
metadata:
  name: {{ .name }}
  {{- if not .cluster }}
  namespace: {{ .namespace | default (include "headgate.namespace" .root) }}
  {{- end }}
  labels:
    {{- include "headgate.labels" (dict "root" .root "component" .component "more" .labels) | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* Reference of an image: root, of (its values), registry (its default) */ -}}
{{- define "headgate.image" -}}
{{- $name := .of.repository }}
{{- if not $name }}
{{- $name = printf "%s/%s" (.of.registry | default .root.Values.global.image.registry | default .registry | default "ghcr.io") .of.image }}
{{- end }}
{{- $name }}:{{ include "headgate.text" (.of.tag | default .root.Chart.AppVersion) }}{{ with .of.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* A scalar as text, without the exponents that Go prints for large numbers */ -}}
{{- define "headgate.text" -}}
{{- if kindIs "invalid" . }}
{{- else if not (kindIs "float64" .) }}{{ toString . }}
{{- else if eq (floor .) . }}{{ printf "%.0f" . }}
{{- else }}{{ toString . }}
{{- end }}
{{- end }}

{{- /* A map of scalars as a map of text */ -}}
{{- define "headgate.texts" -}}
{{- range $key, $value := . }}
{{ $key | quote }}: {{ include "headgate.text" $value | quote }}
{{- end }}
{{- end }}

{{- /* Whether Jobs make the certificate of the webhook */ -}}
{{- define "headgate.jobs" -}}
{{- with .Values.controller.admissionWebhooks }}
{{- if and .enabled .patch.enabled (not .certManager.enabled) (not .selfSigned.enabled) }}true{{ end }}
{{- end }}
{{- end }}

{{- /* The only namespace to serve, or nothing */ -}}
{{- define "headgate.watched" -}}
{{- with .Values.controller.scope }}
{{- if .enabled }}{{ .namespace | default (include "headgate.namespace" $) }}{{ end }}
{{- end }}
{{- end }}

{{- /* NAMESPACE/NAME of the Service whose addresses Ingresses get, or nothing */ -}}
{{- define "headgate.published" -}}
{{- $service := .Values.controller.service }}
{{- with .Values.controller.publishService }}
{{- if not .enabled }}
{{- else if .pathOverride }}{{ tpl .pathOverride $ }}
{{- else if not $service.enabled }}
{{- else if $service.external.enabled }}$(POD_NAMESPACE)/{{ include "headgate.controller" $ }}
{{- else if $service.internal.enabled }}$(POD_NAMESPACE)/{{ include "headgate.controller" $ }}-internal
{{- end }}
{{- end }}
{{- end }}

{{- /* Name of the port of a TCP or UDP service: root, port, protocol */ -}}
{{- define "headgate.streamName" -}}
{{- with .root.Values.portNamePrefix }}{{ . }}-{{ end }}{{ .port }}-{{ .protocol }}
{{- end }}

{{- /* Names that values of ingress-nginx's chart may include */ -}}
{{- define "ingress-nginx.name" -}}{{ include "headgate.name" . }}{{- end }}
{{- define "ingress-nginx.fullname" -}}{{ include "headgate.fullname" . }}{{- end }}
{{- define "ingress-nginx.controller.fullname" -}}{{ include "headgate.controller" . }}{{- end }}
