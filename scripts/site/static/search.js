"use strict";
// Searches search-index.js, a list of sections, which is loaded when it is first needed.
(() => {
  const base = document.currentScript.src.replace(/[^/]*$/, "");
  const input = document.querySelector("input[type=search]");
  const results = document.getElementById("results");
  const article = document.querySelector("article");

  let loading;
  function load() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = base + "search-index.js";
      script.onload = resolve;
      script.onerror = reject;
      document.head.append(script);
    });
    return loading;
  }

  // A section is found if it has all words. Words in its title count most, then short sections.
  function score(section, words) {
    const title = section.title.toLowerCase();
    const page = section.page.toLowerCase();
    const text = section.text.toLowerCase();
    let sum = 0;
    for (const word of words) {
      const points = (title.includes(word) ? 10 : 0) + (page.includes(word) ? 3 : 0) + (text.includes(word) ? 1 : 0);
      if (points === 0) {
        return 0;
      }
      sum += points;
    }
    return sum;
  }

  function item(section, words) {
    const link = document.createElement("a");
    link.href = base + section.url;
    link.textContent = section.title === section.page ? section.page : `${section.page}: ${section.title}`;
    const excerpt = document.createElement("p");
    const at = Math.max(0, ...words.map((word) => section.text.toLowerCase().indexOf(word)));
    excerpt.textContent = (at > 60 ? "… " : "") + section.text.slice(Math.max(0, at - 60), at + 160);
    const li = document.createElement("li");
    li.append(link, excerpt);
    return li;
  }

  async function search() {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length > 0) {
      await load();
    }
    const found = words.length === 0 ? [] : searchIndex
      .map((section) => ({ section, points: score(section, words) }))
      .filter((hit) => hit.points > 0)
      .sort((a, b) => b.points - a.points || a.section.text.length - b.section.text.length)
      .slice(0, 30)
      .map((hit) => item(hit.section, words));
    if (words.length > 0 && found.length === 0) {
      const none = document.createElement("li");
      none.textContent = "Nothing found.";
      found.push(none);
    }
    results.replaceChildren(...found);
    results.hidden = words.length === 0;
    article.hidden = words.length > 0;
  }

  input.addEventListener("focus", load);
  input.addEventListener("input", search);
  input.form.addEventListener("submit", (event) => event.preventDefault());
  results.addEventListener("click", (event) => {
    // A link to a heading of this page loads no page.
    if (event.target.closest("a")) {
      input.value = "";
      search();
    }
  });
})();
