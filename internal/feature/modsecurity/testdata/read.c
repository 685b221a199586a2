/* Reads texts that end with a zero byte, gives each to ModSecurity, and prints a line for each:
   how many rules it has and the status that they refuse a request with, or the error. */
#include <modsecurity/modsecurity.h>
#include <modsecurity/rules_set.h>
#include <stdio.h>
#include <stdlib.h>

static int status_of(ModSecurity *library, RulesSet *rules) {
  ModSecurityIntervention found = {200, 0, NULL, NULL, 0};
  Transaction *t = msc_new_transaction(library, rules, NULL);
  msc_process_connection(t, "192.0.2.1", 1, "192.0.2.2", 80);
  msc_process_uri(t, "/", "GET", "1.1");
  msc_process_request_headers(t);
  msc_intervention(t, &found);
  msc_transaction_cleanup(t);
  free(found.url);
  free(found.log);
  return found.status;
}

int main(void) {
  ModSecurity *library = msc_init();
  char *text = NULL;
  size_t size = 0;
  while (getdelim(&text, &size, 0, stdin) > 0) {
    const char *error = NULL;
    RulesSet *rules = msc_create_rules_set();
    int count = msc_rules_add(rules, text, &error);
    if (count < 0) {
      for (const char *c = error; *c; c++) putchar(*c == '\n' ? ' ' : *c);
      putchar('\n');
    } else {
      printf("%d %d\n", count, status_of(library, rules));
    }
    msc_rules_cleanup(rules);
  }
  free(text);
  msc_cleanup(library);
  return 0;
}
