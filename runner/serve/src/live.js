// Fragments of the page that change arrive as server-sent events: {"id": "html", …}. A lost connection is made again by the browser, and begins with all fragments.
"use strict";
(() => {
  const address = document.body.dataset.live;
  const connection = document.getElementById("connection");
  // The fragments as they came last; a page comes with its first ones.
  const received = new Map();
  const isShown = (element, html) => {
    if (received.has(element.id)) return received.get(element.id) === html;
    const parsed = document.createElement("template");
    parsed.innerHTML = html;
    return parsed.innerHTML === element.innerHTML;
  };
  // What takes the focus: a link is known again by its address, since ids are few, anything else by its place.
  const takers = (element) => [...element.querySelectorAll("a[href], button, input, summary, [tabindex]")];
  const refocus = (element, focused, place) => {
    const now = takers(element);
    const key = focused.id ? "id" : "href";
    const same = focused.id || focused.href ? now.find((taker) => taker[key] === focused[key]) : now[place];
    same?.focus({ preventScroll: true });
  };
  // Details that are open stay open, what is scrolled aside stays there, and what the reader has ticked or typed stays so.
  const replace = (element, html) => {
    const inputs = [...element.querySelectorAll("input[id]")];
    const ticked = inputs.filter((input) => input.checked !== input.defaultChecked).map((input) => [input.id, input.checked]);
    const typed = inputs.filter((input) => input.value !== input.defaultValue).map((input) => [input.id, input.value]);
    const open = [...element.querySelectorAll("details[open][id]")].map((details) => details.id);
    const log = element.querySelector(".log");
    const atEnd = !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    const top = log ? log.scrollTop : 0;
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    const place = takers(element).indexOf(focused);
    const aside = [...element.querySelectorAll(".wide")].map((wide) => wide.scrollLeft);
    element.innerHTML = html;
    window.setUpCharts?.(element);
    element.querySelectorAll(".wide").forEach((wide, i) => { wide.scrollLeft = aside[i] ?? 0; });
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    for (const [id, checked] of ticked) Object.assign(document.getElementById(id) ?? {}, { checked });
    for (const [id, value] of typed) Object.assign(document.getElementById(id) ?? {}, { value });
    const now = element.querySelector(".log");
    if (now) now.scrollTop = atEnd ? now.scrollHeight : top;
    if (focused) refocus(element, focused, place);
  };
  for (const log of document.querySelectorAll(".log")) log.scrollTop = log.scrollHeight;
  if (!address) return;
  const connect = () => {
    const source = new EventSource(address);
    source.onopen = () => { connection.textContent = "live"; };
    source.onerror = () => {
      connection.textContent = "connection lost, trying again";
      // A browser gives up after a refusal, as by a server with too many connections.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5000);
    };
    source.onmessage = (event) => {
      for (const [id, html] of Object.entries(JSON.parse(event.data))) {
        const element = document.getElementById(id);
        if (!element) continue;
        if (!isShown(element, html)) replace(element, html);
        received.set(id, html);
      }
    };
    source.addEventListener("end", () => { source.close(); connection.textContent = "ended"; });
  };
  connect();
})();
