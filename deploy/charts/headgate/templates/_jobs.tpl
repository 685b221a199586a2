{{- /* A Job that makes the certificate of the webhook, or writes it: root, of, args, hook */ -}}
{{- define "headgate.job" -}}
{{- $root := .root }}
{{- $patch := .root.Values.controller.admissionWebhooks.patch }}
{{- $hook := dict "helm.sh/hook" .hook "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" }}
---
apiVersion: batch/v1
kind: Job
{{ include "headgate.metadata" (dict "root" .root "name" (printf "%s-%s" (include "headgate.webhook" .root) .of.name) "component" "admission-webhook" "labels" $patch.labels "annotations" $hook) }}
spec:
  # Removed also if Helm was stopped
  ttlSecondsAfterFinished: 600
  {{- with .of.activeDeadlineSeconds }}
  activeDeadlineSeconds: {{ . }}
  {{- end }}
  template:
    metadata:
      labels:
        {{- include "headgate.labels" (dict "root" .root "component" "admission-webhook" "more" $patch.labels) | nindent 8 }}
      {{- with $patch.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "headgate.jobAccount" .root }}
      automountServiceAccountToken: {{ $patch.serviceAccount.automountServiceAccountToken }}
      restartPolicy: OnFailure
      {{- with $patch.securityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "headgate.podFields" (dict "of" $patch "root" .root) | nindent 6 }}
      containers:
      - name: {{ .of.name }}
        image: {{ include "headgate.image" (dict "root" .root "of" $patch.image) }}
        imagePullPolicy: {{ $patch.image.pullPolicy }}
        args:
        {{- toYaml .args | nindent 8 }}
        env:
        - name: POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        {{- with .root.Values.controller.admissionWebhooks.extraEnvs }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with .of.securityContext }}
        securityContext:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- with .of.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
{{- end }}
