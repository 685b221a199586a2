{{- /* The certificate of the webhook by cert-manager, and a CA of its own unless an issuer is named */ -}}
{{- define "headgate.certificates" -}}
{{- $manager := .Values.controller.admissionWebhooks.certManager }}
{{- $fullname := include "headgate.fullname" . }}
{{- $service := include "headgate.webhookService" . }}
{{- $namespace := include "headgate.namespace" . }}
{{- $issuer := $manager.issuerRef }}
{{- if not $issuer }}
{{- $issuer = dict "name" (printf "%s-root-issuer" $fullname) "kind" "Issuer" }}
---
apiVersion: cert-manager.io/v1
kind: Issuer
{{ include "headgate.metadata" (dict "root" . "name" (printf "%s-self-signed-issuer" $fullname) "component" "admission-webhook") }}
spec:
  selfSigned: {}
---
apiVersion: cert-manager.io/v1
kind: Certificate
{{ include "headgate.metadata" (dict "root" . "name" (printf "%s-root-cert" $fullname) "component" "admission-webhook") }}
spec:
  secretName: {{ $fullname }}-root-cert
  duration: {{ $manager.rootCert.duration | default "43800h0m0s" }}
  {{- with $manager.rootCert.revisionHistoryLimit }}
  revisionHistoryLimit: {{ . }}
  {{- end }}
  issuerRef:
    name: {{ $fullname }}-self-signed-issuer
  commonName: ca.webhook.headgate
  isCA: true
---
apiVersion: cert-manager.io/v1
kind: Issuer
{{ include "headgate.metadata" (dict "root" . "name" $issuer.name "component" "admission-webhook") }}
spec:
  ca:
    secretName: {{ $fullname }}-root-cert
{{- end }}
---
apiVersion: cert-manager.io/v1
kind: Certificate
{{ include "headgate.metadata" (dict "root" . "name" (include "headgate.webhook" .) "component" "admission-webhook") }}
spec:
  secretName: {{ include "headgate.webhook" . }}
  duration: {{ $manager.admissionCert.duration | default "8760h0m0s" }}
  {{- with $manager.admissionCert.revisionHistoryLimit }}
  revisionHistoryLimit: {{ . }}
  {{- end }}
  issuerRef:
    {{- toYaml $issuer | nindent 4 }}
  dnsNames:
  - {{ $service }}
  - {{ $service }}.{{ $namespace }}
  - {{ $service }}.{{ $namespace }}.svc
{{- end }}
