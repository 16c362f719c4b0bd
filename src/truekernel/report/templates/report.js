(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const stored = (() => { try { return localStorage.getItem("truekernel-theme"); } catch { return null; } })();
  if (stored) root.dataset.theme = stored;

  document.addEventListener("DOMContentLoaded", () => {
    const theme = document.querySelector(".theme");
    const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const label = () => { theme.textContent = dark() ? "Light" : "Dark"; };
    theme.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("truekernel-theme", root.dataset.theme); } catch { /* a file opened from disk may have no storage */ }
      label();
    });
    label();

    for (const group of document.querySelectorAll("[data-switch]")) {
      const buttons = [...group.querySelectorAll("button")];
      const choose = (name) => {
        for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === name));
        for (const panel of document.querySelectorAll(`[data-panel^="${group.dataset.switch}:"]`))
          panel.hidden = panel.dataset.panel !== `${group.dataset.switch}:${name}`;
      };
      for (const button of buttons) button.addEventListener("click", () => choose(button.value));
      if (buttons.length) choose(buttons[0].value);
    }

    for (const controls of document.querySelectorAll("[data-filters]")) {
      const items = [...document.querySelectorAll(`#${controls.dataset.filters} > [data-text]`)];
      const search = controls.querySelector("input");
      const selects = [...controls.querySelectorAll("select")];
      const shown = controls.querySelector(".shown");
      const apply = () => {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        let visible = 0;
        for (const item of items) {
          const fits = words.every((word) => item.dataset.text.includes(word)) &&
            selects.every((select) => !select.value || item.dataset[select.name].split(" ").includes(select.value));
          item.hidden = !fits;
          visible += fits;
        }
        shown.textContent = visible === items.length ? `${items.length} shown` : `${visible} of ${items.length} shown`;
      };
      search.addEventListener("input", apply);
      for (const select of selects) select.addEventListener("change", apply);
      controls.querySelector("[data-fold]")?.addEventListener("click", (event) => {
        const open = event.target.getAttribute("aria-pressed") !== "true";
        event.target.setAttribute("aria-pressed", String(open));
        event.target.textContent = open ? "Fold all" : "Unfold all";
        for (const item of items) if (!item.hidden) item.open = open;
      });
      apply();
    }

    const edges = (box) => {
      const more = box.scrollLeft + box.clientWidth < box.scrollWidth - 2;
      box.classList.toggle("more", more);
      if (box.clientWidth) box.closest("section")?.classList.toggle("scrolls", box.scrollWidth > box.clientWidth + 2);
    };
    const watch = new ResizeObserver((entries) => { for (const entry of entries) edges(entry.target); });
    for (const box of document.querySelectorAll(".scroll")) {
      watch.observe(box);
      box.addEventListener("scroll", () => edges(box), { passive: true });
    }

    document.addEventListener("click", async (event) => {
      const button = event.target.closest("[data-copy]");
      if (!button) return;
      const text = button.previousElementSibling.textContent;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
        document.execCommand("copy");
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1200);
    });

    const openTarget = () => {
      const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
    };
    addEventListener("hashchange", openTarget);
    openTarget();
  });
})();
