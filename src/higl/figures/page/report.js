"use strict";
// The page shows curves, the last landmark map and all tables without this script. The script adds the slider, the
// values under the pointer and, on a page that `higl watch` serves, automatic updates.
(() => {
  // As `steps_text` in higl/text.py.
  const stepsText = (steps) =>
    steps >= 1e6 ? `${+(steps / 1e6).toPrecision(3)}M` : steps >= 1e3 ? `${+(steps / 1e3).toPrecision(3)}k` : `${steps}`;

  // --- Curves: a cursor that follows the pointer or the arrow keys ---

  function nearest(steps, wanted) {
    let low = 0, high = steps.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low > 0 && wanted - steps[low - 1] < steps[low] - wanted ? low - 1 : low;
  }

  function prepareChart(svg, series) {
    const cursor = svg.querySelector(".cursor");
    const readout = svg.parentNode.querySelector("output");
    const left = +svg.dataset.left, right = +svg.dataset.right, last = +svg.dataset.last;
    const drawn = series.filter((curve) => curve.steps.length);
    if (!drawn.length) return;
    let step = null;

    function show(wanted) {
      const longest = drawn.reduce((a, b) => (b.steps.length > a.steps.length ? b : a));
      step = longest.steps[nearest(longest.steps, Math.max(0, Math.min(last, wanted)))];
      const x = left + ((right - left) * step) / last;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
      cursor.setAttribute("visibility", "visible");
      const values = drawn
        .filter((curve) => step >= curve.steps[0] && step <= curve.steps[curve.steps.length - 1])
        .map((curve) => `${curve.label} ${curve.values[nearest(curve.steps, step)]}`);
      readout.textContent = `${stepsText(step)} steps: ${values.join(", ")}`;
    }
    function hide() {
      cursor.setAttribute("visibility", "hidden");
      readout.textContent = "";
    }
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      show(((x - left) / (right - left)) * last);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
      if (move === undefined) return;
      event.preventDefault();
      const steps = drawn.reduce((a, b) => (b.steps.length > a.steps.length ? b : a)).steps;
      const place = step === null ? steps.length - 1 : nearest(steps, step) + move;
      show(steps[Math.max(0, Math.min(steps.length - 1, place))]);
    });
  }

  // --- Maps: one slider moves all maps of a run through training ---

  function prepareMaps(section, titles) {
    const slider = section.querySelector("input[type=range]");
    if (!slider) return;
    const button = section.querySelector("button.play");
    const title = section.querySelector(".controls output");
    const maps = section.querySelector(".maps");
    const moments = [...maps.querySelectorAll("svg.map")].map((map) => [...map.querySelectorAll(".moment")]);
    let timer = null;

    function show() {
      for (const group of moments) group.forEach((moment, index) => moment.classList.toggle("on", index === +slider.value));
      title.textContent = titles[slider.value];
      slider.setAttribute("aria-valuetext", titles[slider.value]);
    }
    function stop() {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
    }
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (+slider.value === +slider.max) slider.value = 0;
      show();
      button.textContent = "Pause";
      timer = setInterval(() => {
        if (!button.isConnected || +slider.value >= +slider.max) return stop();
        slider.value = +slider.value + 1;
        show();
      }, 350);
    });
    slider.addEventListener("input", () => { stop(); show(); });
    for (const box of section.querySelectorAll("input[data-layer]")) {
      const apply = () => maps.classList.toggle(`hide-${box.dataset.layer}`, !box.checked);
      box.addEventListener("change", apply);
      apply();
    }
    show();
  }

  // --- The page ---

  function prepare() {
    const data = JSON.parse(document.getElementById("data").textContent);
    for (const [key, series] of Object.entries(data.charts)) prepareChart(document.getElementById(key), series);
    for (const [key, titles] of Object.entries(data.maps)) prepareMaps(document.getElementById(key), titles);
  }

  // An update keeps the reader's choices; a slider at its end stays at the end.
  function remember() {
    const state = { sliders: {}, boxes: {}, open: [], focus: document.activeElement?.id };
    for (const slider of document.querySelectorAll("input[type=range]"))
      state.sliders[slider.id] = +slider.value === +slider.max ? "last" : slider.value;
    for (const box of document.querySelectorAll("input[data-layer]")) state.boxes[box.id] = box.checked;
    for (const details of document.querySelectorAll("details[open]")) state.open.push(details.id);
    return state;
  }
  function recall(state) {
    for (const [id, value] of Object.entries(state.sliders)) {
      const slider = document.getElementById(id);
      if (slider) slider.value = value === "last" ? slider.max : value;
    }
    for (const [id, checked] of Object.entries(state.boxes)) {
      const box = document.getElementById(id);
      if (box) box.checked = checked;
    }
    for (const id of state.open) document.getElementById(id)?.setAttribute("open", "");
  }

  async function refresh() {
    const answer = await fetch("/", { cache: "no-store" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const state = remember();
    const videos = new Map([...document.querySelectorAll("video")].map((video) => [video.dataset.digest, video]));
    for (const video of fresh.querySelectorAll("video"))
      if (videos.has(video.dataset.digest)) video.replaceWith(videos.get(video.dataset.digest));
    document.querySelector("header").replaceWith(fresh.querySelector("header"));
    document.querySelector("main").replaceWith(fresh.querySelector("main"));
    document.title = fresh.title;
    recall(state);
    prepare();
    if (state.focus) document.getElementById(state.focus)?.focus({ preventScroll: true });
    document.body.dataset.refreshed = String(+(document.body.dataset.refreshed ?? 0) + 1);
  }

  function watch(seconds) {
    const notice = document.getElementById("live");
    let known = document.body.dataset.version;
    const look = async () => {
      try {
        const answer = await fetch("/version", { cache: "no-store" });
        const version = answer.ok ? await answer.text() : known;
        const playing = [...document.querySelectorAll("button.play")].some((button) => button.textContent === "Pause");
        if (version !== known && !playing) {
          await refresh();
          known = version;
        }
        notice.textContent = `live, checked at ${new Date().toLocaleTimeString()}`;
      } catch {
        notice.textContent = "higl watch has stopped: this page no longer updates";
      }
      setTimeout(look, 1000 * seconds);
    };
    setTimeout(look, 1000 * seconds);
  }

  // A link to a run opens its section.
  function unfold() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView();
    }
  }

  prepare();
  unfold();
  addEventListener("hashchange", unfold);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  if (document.body.dataset.watch) watch(+document.body.dataset.watch);
})();
