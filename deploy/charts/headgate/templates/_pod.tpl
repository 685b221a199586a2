{{- /* What Deployment and DaemonSet have in common: the pods of a part */ -}}
{{- define "headgate.pods" -}}
{{- $c := .Values.controller }}
{{- $part := include "headgate.part" . }}
{{- $component := include "headgate.component" . }}
revisionHistoryLimit: {{ .Values.revisionHistoryLimit }}
{{- with $c.minReadySeconds }}
minReadySeconds: {{ . }}
{{- end }}
selector:
  matchLabels:
    {{- include "headgate.selector" (dict "root" . "component" $component) | nindent 4 }}
template:
  metadata:
    labels:
      {{- include "headgate.labels" (dict "root" . "component" $component "more" $c.podLabels) | nindent 6 }}
      {{- with include "headgate.scrapedLabel" . }}
      {{- . | nindent 6 }}
      {{- end }}
    {{- with $c.podAnnotations }}
    annotations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    {{- if eq $part "edge" }}
    serviceAccountName: {{ include "headgate.edgeAccount" . }}
    automountServiceAccountToken: false
    {{- else }}
    serviceAccountName: {{ include "headgate.controllerAccount" . }}
    automountServiceAccountToken: {{ .Values.serviceAccount.automountServiceAccountToken }}
    {{- end }}
    terminationGracePeriodSeconds: {{ $c.terminationGracePeriodSeconds }}
    {{- if and (eq $part "edge") $c.hostNetwork (eq $c.dnsPolicy "ClusterFirst") }}
    # With the network of the node, ClusterFirst does not resolve the Service of the controls.
    dnsPolicy: ClusterFirstWithHostNet
    {{- else }}
    dnsPolicy: {{ $c.dnsPolicy }}
    {{- end }}
    {{- if and $c.hostNetwork (ne $part "control") }}
    hostNetwork: true
    {{- end }}
    {{- if $c.shareProcessNamespace }}
    shareProcessNamespace: true
    {{- end }}
    {{- with include "headgate.podSecurity" . }}
    securityContext:
      {{- . | nindent 6 }}
    {{- end }}
    {{- include "headgate.podFields" (dict "of" $c "root" . "component" $component) | nindent 4 }}
    {{- with $c.extraInitContainers }}
    initContainers:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    containers:
    {{- include "headgate.container" . | nindent 4 }}
    {{- with $c.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with include "headgate.volumes" . }}
    volumes:
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "headgate.podSecurity" -}}
{{- $security := deepCopy .Values.controller.podSecurityContext }}
{{- $sysctls := $security.sysctls | default list }}
{{- range $name, $value := .Values.controller.sysctls }}
{{- $sysctls = append $sysctls (dict "name" $name "value" (include "headgate.text" $value)) }}
{{- end }}
{{- with $sysctls }}{{ $_ := set $security "sysctls" . }}{{ end }}
{{- with $security }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* Fields of pods by the values of the same names: of, root */ -}}
{{- define "headgate.podFields" -}}
{{- $fields := dict }}
{{- $of := .of }}
{{- range list "dnsConfig" "hostAliases" "priorityClassName" "runtimeClassName" "nodeSelector" "tolerations" "affinity" }}
{{- $value := index $of . }}
{{- if $value }}{{ $_ := set $fields . $value }}{{ end }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $fields "imagePullSecrets" . }}{{ end }}
{{- with $of.hostname }}{{ $fields = mergeOverwrite $fields . }}{{ end }}
{{- with $fields }}{{ toYaml . }}{{ end }}
{{- if $of.topologySpreadConstraints }}
topologySpreadConstraints:
{{- $selector := include "headgate.selector" (dict "root" .root "component" (.component | default "controller")) | fromYaml }}
{{- range $of.topologySpreadConstraints }}
{{- $constraint := . }}
{{- if not .labelSelector }}{{ $constraint = merge (dict "labelSelector" (dict "matchLabels" $selector)) . }}{{ end }}
- {{ tpl (toYaml $constraint) $.root | nindent 2 | trim }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headgate.container" -}}
{{- $c := .Values.controller }}
{{- $capabilities := dict "drop" (list "ALL") }}
{{- if ne (include "headgate.part" .) "control" }}{{ $_ := set $capabilities "add" (list "NET_BIND_SERVICE") }}{{ end }}
- name: {{ $c.containerName }}
  image: {{ include "headgate.image" (dict "root" . "of" $c.image) }}
  imagePullPolicy: {{ $c.image.pullPolicy }}
  args:
  {{- include "headgate.args" . | nindent 2 }}
  securityContext:
    {{- include "headgate.containerSecurity" (dict "of" $c "capabilities" $capabilities) | nindent 4 }}
  env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  {{- if $c.enableMimalloc }}
  - name: LD_PRELOAD
    value: /usr/local/lib/libmimalloc.so
  {{- end }}
  {{- with $c.extraEnvs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  ports:
  {{- include "headgate.containerPorts" . | nindent 2 }}
  {{- range list "startupProbe" "livenessProbe" "readinessProbe" "lifecycle" "resources" }}
  {{- $value := index $c . }}
  {{- if $value }}
  {{- toYaml (dict . $value) | nindent 2 }}
  {{- end }}
  {{- end }}
  {{- with include "headgate.mounts" . | fromYamlArray }}
  volumeMounts:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* The securityContext of a container: of (its values), capabilities */ -}}
{{- define "headgate.containerSecurity" -}}
{{- if .of.containerSecurityContext }}
{{- toYaml .of.containerSecurityContext }}
{{- else }}
{{- with .of.image }}
{{- toYaml (dict
  "runAsNonRoot" .runAsNonRoot
  "runAsUser" .runAsUser
  "runAsGroup" .runAsGroup
  "allowPrivilegeEscalation" .allowPrivilegeEscalation
  "readOnlyRootFilesystem" .readOnlyRootFilesystem
  "seccompProfile" .seccompProfile
  "capabilities" $.capabilities) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headgate.containerPorts" -}}
{{- $c := .Values.controller }}
{{- $part := include "headgate.part" . }}
{{- range $name, $port := $c.containerPort }}
- name: {{ $name }}
  containerPort: {{ $port }}
  protocol: TCP
  {{- if $c.hostPort.enabled }}
  hostPort: {{ index $c.hostPort.ports $name | default $port }}
  {{- end }}
{{- end }}
{{- if $c.metrics.enabled }}
- name: {{ $c.metrics.portName }}
  containerPort: {{ $c.metrics.port }}
  protocol: TCP
{{- end }}
{{- if and $c.admissionWebhooks.enabled (ne $part "edge") }}
- name: webhook
  containerPort: {{ $c.admissionWebhooks.port }}
  protocol: TCP
{{- end }}
{{- if ne $part "control" }}
{{- range $protocol := list "tcp" "udp" }}
{{- range $port, $_ := index $.Values $protocol }}
- name: {{ include "headgate.streamName" (dict "root" $ "port" $port "protocol" $protocol) }}
  containerPort: {{ $port }}
  protocol: {{ upper $protocol }}
  {{- if $c.hostPort.enabled }}
  hostPort: {{ $port }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether the Secret with the certificate of the webhook is mounted */ -}}
{{- define "headgate.mountsCertificate" -}}
{{- with .Values.controller.admissionWebhooks }}
{{- if and .enabled (not .selfSigned.enabled) (ne (include "headgate.part" $) "edge") }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Directories that are written to, with a read-only root: those without a volume of the user */ -}}
{{- define "headgate.writable" -}}
{{- $c := .Values.controller }}
{{- if ($c.containerSecurityContext | default $c.image).readOnlyRootFilesystem }}
{{- $taken := list }}
{{- range $c.extraVolumeMounts }}{{ $taken = append $taken (trimSuffix "/" .mountPath) }}{{ end }}
{{- range $name, $path := dict "writable-etc" "/etc/ingress-controller" "writable-run" "/run" "writable-tmp" "/tmp" }}
{{- if not (has $path $taken) }}
{{ $name }}: {{ $path }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "headgate.mounts" -}}
{{- if include "headgate.mountsCertificate" . }}
- name: webhook-cert
  mountPath: {{ dir .Values.controller.admissionWebhooks.certificate }}
  readOnly: true
{{- end }}
{{- include "headgate.partMounts" . }}
{{- range $name, $path := include "headgate.writable" . | fromYaml }}
- name: {{ $name }}
  mountPath: {{ $path }}
{{- end }}
{{- with .Values.controller.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "headgate.volumes" -}}
{{- if include "headgate.mountsCertificate" . }}
- name: webhook-cert
  secret:
    secretName: {{ include "headgate.webhook" . }}
    {{- if .Values.controller.admissionWebhooks.certManager.enabled }}
    items:
    - {key: tls.crt, path: {{ base .Values.controller.admissionWebhooks.certificate }}}
    - {key: tls.key, path: {{ base .Values.controller.admissionWebhooks.key }}}
    {{- end }}
{{- end }}
{{- include "headgate.partVolumes" . }}
{{- range $name, $_ := include "headgate.writable" . | fromYaml }}
- name: {{ $name }}
  emptyDir: {}
{{- end }}
{{- with .Values.controller.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
