"use strict";
const { html, render, useState, useEffect, useRef } = htmPreact;

// ---- the router

// Whole numbers that JavaScript would round, as keys of bigint and hashes may be, stay the text that they are.
const read = text => JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|(?<![\d.])-?\d{16,}(?![\d.eE])/g, found => found[0] === '"' ? found : `"${found}"`));

// A key as somebody types it, a value a column; a comma belongs to the value where there is one column.
const typed = (text, map) => map.key.length > 1 ? text.split(",").map(k => k.trim()) : /^(text|varchar|character)/.test(map.key[0]) && map.kind !== "hash" ? [text] : [text.trim()];

// The token stays in this tab; an address with #token=... is taken and cleaned.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) { sessionStorage.setItem("token", given); history.replaceState(null, "", location.pathname); }

async function ask(method, path, body) {
  const answer = await fetch(path, { method, headers: { Authorization: "Bearer " + (sessionStorage.getItem("token") || ""),
    ...(body ? { "Content-Type": "application/json" } : {}) }, body: body ? JSON.stringify(body) : undefined });
  const text = await answer.text();
  const json = text && (answer.headers.get("Content-Type") || "").includes("json") ? read(text) : {};
  if (answer.ok) return json;
  throw Object.assign(new Error(json.detail ? json.detail + (json.circumstances && !json.detail.includes(json.circumstances) ? " (" + json.circumstances + ")" : "")
    + (json.hint ? " " + json.hint : "") : "status " + answer.status), { status: answer.status });
}
const get = path => ask("GET", path);
// The pages of a list together, up to `most` items.
async function whole(path, most) {
  const items = [];
  for (let next = ""; ;) {
    const page = await get(`${path}?limit=1000${next ? "&after=" + part(next) : ""}`);
    items.push(...page.items);
    if (!page.next || items.length >= most) return { items, next: page.next };
    next = page.next;
  }
}
const part = encodeURIComponent;

// Sums of the histogram over all tiers, and counts, from /metrics.
function readMetrics(text) {
  const buckets = new Map(), counts = { ok: 0, failed: 0 };
  for (const line of text.split("\n")) {
    let found = /^kintsugi_statement_seconds_bucket\{.*le="([^"]+)"\} (\d+)/.exec(line);
    if (found) { const le = found[1] === "+Inf" ? Infinity : Number(found[1]); buckets.set(le, (buckets.get(le) || 0) + Number(found[2])); continue; }
    found = /^kintsugi_statements_total\{.*outcome="(\w+)"\} (\d+)/.exec(line);
    if (found) counts[found[1]] += Number(found[2]);
  }
  return { at: performance.now(), buckets: [...buckets].sort((a, b) => a[0] - b[0]), counts };
}
// What came to pass between two readings.
function between(before, now) {
  const seconds = Math.max((now.at - before.at) / 1000, 0.001);
  const total = kind => Math.max(now.counts[kind] - before.counts[kind], 0);
  const was = new Map(before.buckets), grown = now.buckets.map(([le, n]) => [le, n - (was.get(le) || 0)]);
  const all = grown.length ? grown[grown.length - 1][1] : 0;
  const quantile = q => { const hit = grown.find(([, n]) => n > all * q); return all && hit ? hit[0] * 1000 : null; };
  return { rate: (total("ok") + total("failed")) / seconds, failed: total("failed") / seconds, p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99) };
}

// ---- small pieces

const shown = value => value === null || value === undefined ? "" : Array.isArray(value) ? value.map(shown).join(", ")
  : typeof value === "boolean" ? (value ? "yes" : "no") : typeof value === "object" ? (value.value ?? JSON.stringify(value)) : String(value);
const number = n => n === null || n === undefined || !isFinite(n) ? "–" : n >= 100 ? Math.round(n).toLocaleString("en") : n >= 10 ? n.toFixed(1) : n.toFixed(n ? 2 : 0);
const bytes = n => { if (n === null || n === undefined) return "–"; const units = ["B", "kB", "MB", "GB", "TB"]; let i = 0; while (n >= 1024 && i < 4) { n /= 1024; ++i; } return number(n) + " " + units[i]; };
const ended = ["done", "failed", "canceled"];
const range = s => s.values ? s.values.map(shown).join(", ") : `${shown(s.from)} … ${shown(s.to)}`;
let names = []; // of the shards: one colour each, the same everywhere
const ink = shard => `hsl(${(Math.max(names.indexOf(shard), 0) * 137 + 32) % 360} 52% var(--on))`;
const colour = shard => "--c: " + ink(shard);
const Dot = ({ shard }) => html`<span class="dot" style=${colour(shard)}></span>${shard}`;

function Table({ items, columns, none }) {
  if (!items || !items.length) return html`<p class="none">${none || "none"}</p>`;
  return html`<div class="scroll"><table><thead><tr>${columns.map(c => html`<th scope="col" class=${c.n ? "n" : ""}>${c.name}</th>`)}</tr></thead>
    <tbody>${items.map((item, i) => html`<tr key=${item.id ?? i}>${columns.map(c => {
      const value = c.of ? c.of(item) : shown(item[c.name]);
      return html`<td class=${(c.n ? "n" : "") + (c.long ? " long" : "") + (value === "" ? " empty" : "")} data-is=${c.name}>${value}</td>`; })}</tr>`)}</tbody></table></div>`;
}

function Spark({ points, of, colour: ink, label }) {
  const most = Math.max(...points.map(p => of(p) || 0), 0.001), width = 600, height = 60;
  const x = i => (i / Math.max(points.length - 1, 1)) * width, y = p => height - ((of(p) || 0) / most) * (height - 4);
  const line = points.map((p, i) => `${x(i).toFixed(1)},${y(p).toFixed(1)}`).join(" ");
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label=${label}>
    <polygon points=${`0,${height} ${line} ${width},${height}`} fill=${ink} opacity=".16"/>
    <polyline points=${line} fill="none" stroke=${ink} stroke-width="2" vector-effect="non-scaling-stroke"/></svg>`;
}

// A native dialog: Escape closes it, the focus stays inside and comes back.
function Dialog({ title, onclose, children }) {
  const it = useRef();
  useEffect(() => { const before = document.activeElement; it.current.showModal(); return () => before && before.focus && before.focus(); }, []);
  return html`<dialog ref=${it} onclose=${onclose} aria-label=${title}><h2>${title}</h2>${children}</dialog>`;
}

// ---- what the page is made of

function SignIn({ wrong, onsign }) {
  const [token, setToken] = useState("");
  return html`<${Dialog} title="Sign in" onclose=${() => onsign(null)}><form onsubmit=${e => { e.preventDefault(); onsign(token.trim()); }}>
    <p>The token is in the router's token file (<code>admin.token</code> in its data folder), or was printed by <code>kintsugi user add</code>.</p>
    ${wrong ? html`<p class="bad" role="alert">${wrong}</p>` : null}
    <div class="row"><input id="token" type="password" aria-label="token" autocomplete="off" autofocus required value=${token} oninput=${e => setToken(e.target.value)} size="40"/>
    <button class="go">Sign in</button></div></form></${Dialog}>`;
}

function Live({ history }) {
  const last = history[history.length - 1];
  return html`<section class="wide" aria-labelledby="h-live"><h2 id="h-live">Statements <small>now, over this router</small></h2>
    <div class="figures"><div><b>${last ? number(last.rate) : "…"}</b><span>a second</span></div>
    <div><b>${last ? number(last.p50) : "…"}</b><span>ms, half of them</span></div><div><b>${last ? number(last.p95) : "…"}</b><span>ms, 95 %</span></div>
    <div><b>${last ? number(last.p99) : "…"}</b><span>ms, 99 %</span></div><div><b class=${last && last.failed ? "bad" : ""}>${last ? number(last.failed) : "…"}</b><span>errors a second</span></div></div>
    ${history.length > 1 ? html`<div style="display:grid;grid-template-columns:1fr 1fr;gap:1.2rem"><div><${Spark} points=${history} of=${p => p.rate} colour="var(--gold)" label="statements a second"/><small class="none">statements a second</small></div>
    <div><${Spark} points=${history} of=${p => p.p95} colour="var(--good)" label="latency, 95 percent"/><small class="none">95 % latency</small></div></div>` : null}</section>`;
}

function Shards({ state }) {
  const { shards, pools } = state, all = shards.reduce((sum, s) => sum + s.load, 0) || 1;
  return html`<section class="wide" aria-labelledby="h-shards"><h2 id="h-shards">Shards</h2><div class="shards">${shards.map(shard => {
    const share = shard.load / all;
    const pool = pools.filter(p => p.shard === shard.name), open = pool.reduce((n, p) => n + p.open, 0), limit = pool.reduce((n, p) => n + p.limit, 0);
    return html`<div class="shard" style=${colour(shard.name)}><strong>${shard.name}</strong> <span class=${shard.state === "online" ? "good" : "bad"}>${shard.state}</span>${shard.home ? " · home" : ""}
      <div class="meter" title="its part of the statements"><i style="width:${(share * 100).toFixed(1)}%"></i></div>
      <div class="facts"><span><b>${number(share * 100)} %</b> of the load</span><span><b>${bytes(shard.bytes)}</b></span><span><b>${shard.entries}</b> shardlets</span>
      <span><b>${open}</b>${limit ? "/" + limit : ""} connections</span></div><div class="dsn">${shard.dsn}</div></div>`; })}</div>
    ${shards.length ? null : html`<p class="none">None yet. <code>CREATE SHARD s1 DSN 'host=... dbname=...'</code> makes the first.</p>`}</section>`;
}

// A map as a bar. Where there are more shardlets than fit, neighbours share a piece of it, in the colours of their
// shards, and choosing the piece shows them in a bar of their own below.
const pixelsEach = 7;
function Pieces({ label, items, room, moving, choose }) {
  const [open, setOpen] = useState(null);
  const each = Math.ceil(items.length / Math.max(Math.floor(room / pixelsEach), 20));
  const groups = each < 2 ? null : Array.from({ length: Math.ceil(items.length / each) }, (_, i) => items.slice(i * each, (i + 1) * each));
  const tight = items.length > room / 30, opened = groups && open !== null && groups[open];
  // Left and right go through a bar, Home and End to its ends.
  const step = e => {
    const to = { ArrowLeft: e.target.previousElementSibling, ArrowRight: e.target.nextElementSibling, Home: e.currentTarget.firstElementChild, End: e.currentTarget.lastElementChild }[e.key];
    if (to) { e.preventDefault(); to.focus(); }
  };
  const look = s => (s.state === "online" ? "" : "closed ") + (moving.has(s.name) ? "moving " : "");
  const stripes = group => { const part = 100 / group.length; return "background-image:linear-gradient(90deg," + group.map((s, i) => `${ink(s.shard)} ${(i * part).toFixed(1)}% ${((i + 1) * part).toFixed(1)}%`) + ")"; };
  const count = group => [...new Set(group.map(s => s.shard))].map(n => `${group.filter(s => s.shard === n).length} on ${n}`).join(", ");
  const about = group => `${group.length} shardlets, ${range({ from: (group[0].values || group[0].from), to: group[group.length - 1].values || group[group.length - 1].to })}: ${count(group)}`;
  return html`<div class="bar" role="group" aria-label=${label} onkeydown=${step}>${groups ? groups.map((group, i) => html`<button key=${i} style=${stripes(group)} tabindex=${i ? -1 : 0} class=${"many " + (group.some(s => moving.has(s.name)) ? "moving " : "")}
      aria-expanded=${String(i === open)} title=${about(group)} aria-label=${about(group)} onclick=${() => setOpen(i === open ? null : i)}></button>`)
    : items.map((s, i) => html`<button key=${s.name} style=${colour(s.shard) + ";background-color:var(--c)"} tabindex=${i ? -1 : 0} class=${look(s) + (tight ? "tight" : "")} data-shardlet=${s.name}
      title="${s.name}: ${range(s)} on ${s.shard}, ${s.state}" aria-label="${s.name}, ${range(s)}, on ${s.shard}, ${s.state}" onclick=${() => choose(s)}>${tight ? "" : s.name}</button>`)}</div>
    ${opened ? html`<${Pieces} key=${open} label="${label}, ${about(opened)}" items=${opened} room=${room} moving=${moving} choose=${choose}/>` : null}`;
}

function Maps({ state, choose }) {
  const { maps, lists, jobs } = state;
  const it = useRef(), [room, setRoom] = useState(1000);
  useEffect(() => { const watch = new ResizeObserver(() => setRoom(it.current.clientWidth)); watch.observe(it.current); return () => watch.disconnect(); }, []);
  const moving = new Set(jobs.filter(j => !ended.includes(j.state)).flatMap(j => (j.shardlets || []).concat(j.shardlet || [], String(j.target || "").split(/[ ,]+/))));
  return html`<section class="wide" aria-labelledby="h-maps"><h2 id="h-maps">Shard maps <small>choose a shardlet to move, split or close it</small></h2><div ref=${it}></div>
    ${maps.map(map => { const page = lists[map.name] || { items: [] };
      return html`<div key=${map.name}><h3>${map.name} <small class="none">by ${map.kind} (${map.key.join(", ")}), ${map.shardlets} ${map.shardlets === 1 ? "shardlet" : "shardlets"}</small></h3>
      <${Pieces} label=${map.name} items=${page.items} room=${room} moving=${moving} choose=${choose}/>
      <div class="legend">${map.shards.map(n => html`<span><${Dot} shard=${n}/></span>`)}${page.next ? html`<span>the first ${page.items.length.toLocaleString("en")} are shown; a key that is looked up leads to the others</span>` : null}</div></div>`; })}
    ${maps.length ? null : html`<p class="none">None yet. <code>CREATE SHARD MAP tenants BY RANGE (bigint)</code> makes the first.</p>`}</section>`;
}

const why = error => [error.message, ...(error.detail || "").split("\n"), error.hint].filter((line, i, all) => line && !all.slice(0, i).some(said => said.includes(line)));

// All that a job has done so far, and what went wrong.
function Story({ job, onclose }) {
  return html`<${Dialog} title="Job ${job.id}: ${job.type} ${job.target}" onclose=${onclose}><p>${job.state}${job.progress && job.progress.rows ? `, ${job.progress.rows.toLocaleString("en")} rows, ${bytes(job.progress.bytes)}` : ""}</p>
    ${job.error ? html`<div class="plan bad">${why(job.error).map(line => html`<p>${line}</p>`)}</div>` : null}
    <div class="scroll story"><${Table} items=${[...(job.history || [])].sort((a, b) => (a.at > b.at) - (a.at < b.at))} none="nothing yet" columns=${[{ name: "at", of: h => shown(h.at).replace("T", " ").slice(0, 19) }, { name: "what", long: true }]}/></div>
    <div class="row end"><button class="go" autofocus onclick=${onclose}>Close</button></div></${Dialog}>`;
}

function Jobs({ jobs, act, rebalance, tell, few }) {
  const recent = jobs.filter(j => !ended.includes(j.state)).concat(jobs.filter(j => ended.includes(j.state)).slice(0, 6));
  const progress = j => !ended.includes(j.state) && j.progress && j.progress.total
    ? html`<progress max=${j.progress.total} value=${j.progress.rows}></progress> ${(j.progress.rows || 0).toLocaleString("en")}${j.progress.eta_s ? ` (${Math.round(j.progress.eta_s)} s left)` : ""}`
    : j.progress && j.progress.rows ? j.progress.rows.toLocaleString("en") + " rows" : "";
  return html`<section class="wide" aria-labelledby="h-jobs"><h2 id="h-jobs">Jobs <button disabled=${few} onclick=${rebalance}>Rebalance…</button></h2><div aria-live="polite">
    <${Table} items=${recent} none="nothing is moving" columns=${[{ name: "id", n: true, of: j => html`<button class="link" aria-label="job ${j.id} in full" onclick=${() => tell(j.id)}>${j.id}</button>` }, { name: "type" }, { name: "target" },
      { name: "state", of: j => html`<span class=${j.state === "done" ? "good" : j.state === "failed" ? "bad" : ""}>${j.state}</span>` }, { name: "progress", of: progress },
      { name: "error", long: true, of: j => j.error ? why(j.error).map((line, i) => html`<div class=${i ? "none" : ""}>${line}</div>`) : "" },
      { name: "", of: j => ended.includes(j.state) ? (j.state === "done" ? "" : html`<button onclick=${() => act(() => ask("POST", `/v1/jobs/${j.id}/resume`))}>Again</button>`)
        : html`<button onclick=${() => act(() => ask("POST", `/v1/jobs/${j.id}/cancel`))}>Cancel</button>` }]}/></div></section>`;
}

// Look up, EXPLAIN (ROUTE).
function Find({ maps, choose }) {
  const [map, setMap] = useState(""), [key, setKey] = useState(""), [found, setFound] = useState(null);
  const [statement, setStatement] = useState(""), [lines, setLines] = useState(null);
  const chosen = map || (maps[0] || {}).name || "";
  const look = async e => { e.preventDefault(); try { setFound(await get(`/v1/maps/${part(chosen)}/lookup?` + typed(key, maps.find(m => m.name === chosen)).map(k => "key=" + part(k)).join("&"))); } catch (error) { setFound(error); } };
  const explain = async e => { e.preventDefault(); try { setLines((await ask("POST", "/v1/explain", { statement })).lines); } catch (error) { setLines(error); } };
  return html`<section aria-labelledby="h-find"><h2 id="h-find">Where is a key?</h2><form class="row" onsubmit=${look}><fieldset class="row" disabled=${!maps.length}>
    <select aria-label="map" value=${chosen} onchange=${e => setMap(e.target.value)}>${maps.map(m => html`<option value=${m.name}>${m.name}</option>`)}</select>
    <input id="key" aria-label="key" placeholder="key" required value=${key} oninput=${e => setKey(e.target.value)} size="14"/><button class="go">Look up</button></fieldset></form>
    <p id="found" aria-live="polite">${found instanceof Error ? html`<span class="bad">${found.message}</span>` : found ? html`<${Dot} shard=${found.shard}/> · shardlet <button class="link" onclick=${() => get(`/v1/maps/${part(found.map)}/shardlets/${part(found.shardlet)}`).then(choose, setFound)}>${found.shardlet}</button>, ${found.state}` : html`<span class="none"> </span>`}</p>
    <h2>Where does a statement go?</h2><form onsubmit=${explain}><textarea id="statement" rows="3" aria-label="statement" required placeholder="SELECT * FROM orders WHERE tenant_id = 42"
      value=${statement} oninput=${e => setStatement(e.target.value)} onkeydown=${e => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) explain(e); }}></textarea>
    <div class="row"><button class="go">Explain</button><small class="none">nothing is run</small></div></form>
    <div id="route" aria-live="polite">${lines instanceof Error ? html`<p class="bad">${lines.message}</p>` : lines ? html`<pre>${lines.join("\n")}</pre>` : null}</div></section>`;
}

// ---- moving, splitting, closing: what will happen is said first

function Change({ shardlet, state, onclose, act }) {
  const others = state.shards.map(s => s.name).filter(n => n !== shardlet.shard);
  const kinds = ["move", ...(shardlet.values ? [] : ["split"]), "state"];
  const [kind, setKind] = useState(others.length ? "move" : kinds[1]), [to, setTo] = useState(others[0] || ""), [at, setAt] = useState(""), [right, setRight] = useState("");
  const tables = state.tables.filter(t => t.map === shardlet.map).map(t => t.name).join(", ") || "no table yet";
  const other = shardlet.state === "online" ? "read only" : "online";
  const map = state.maps.find(m => m.name === shardlet.map) || { key: [] };
  const keys = map.kind === "hash" ? [at.trim()] : typed(at, map);
  const moves = target => [`The rows of ${tables} with keys ${range(shardlet)} are copied from ${shardlet.shard} to ${target} while they are used.`,
    "What is written meanwhile follows; then writes to these keys wait for a moment.", `The map says ${target}, all routers take it, and the rows on ${shardlet.shard} are deleted.`];
  const plan = kind === "move" ? moves(to) : kind === "state" ? [`${shardlet.name} is ${other} from now on: ${other === "online" ? "reads and writes go on" : "reads go on, writes are refused with KG002"}.`]
    : [at ? `${range({ from: shardlet.from, to: keys })} stays on ${shardlet.shard}; ${range({ from: keys, to: shardlet.to })} becomes a shardlet of its own.` : "The key in the middle of its rows is looked for, and becomes the border.",
      ...(right ? [`The right part goes to ${right}: its rows are copied while they are used, and writes to them wait for a moment.`] : ["No row moves."])];
  const go = e => {
    e.preventDefault();
    if (kind === "state") act(() => ask("PATCH", `/v1/maps/${part(shardlet.map)}/shardlets/${part(shardlet.name)}`, { state: other }));
    else if (kind === "move") act(() => ask("POST", "/v1/jobs", { type: "move", shardlet: shardlet.name, to }));
    else act(() => ask("POST", "/v1/jobs", { type: "split", shardlet: shardlet.name, ...(at ? { at: keys } : {}),
      ...(right ? { into: [shardlet.name + "_l", shardlet.name + "_r"], move: shardlet.name + "_r", to: right } : {}) }));
    onclose();
  };
  return html`<${Dialog} title="${shardlet.name}" onclose=${onclose}><form onsubmit=${go}>
    <p>${range(shardlet)} of <b>${shardlet.map}</b> on <${Dot} shard=${shardlet.shard}/>, ${shardlet.state}</p>
    <div class="tabs" role="tablist">${kinds.filter(k => k !== "move" || others.length).map(k => html`<button type="button" role="tab" aria-selected=${String(k === kind)} onclick=${() => setKind(k)}>${{ move: "Move", split: "Split", state: "Set " + other }[k]}</button>`)}</div>
    ${kind === "move" ? html`<label class="row">to <select id="to" value=${to} onchange=${e => setTo(e.target.value)}>${others.map(n => html`<option value=${n}>${n}</option>`)}</select></label>` : null}
    ${kind === "split" ? html`<div class="row"><label>at ${map.kind === "hash" ? "hash" : "key"} <input id="at" value=${at} oninput=${e => setAt(e.target.value)} placeholder="in the middle" size="16"/></label>
      ${others.length ? html`<label>right part <select id="right" value=${right} onchange=${e => setRight(e.target.value)}><option value="">stays on ${shardlet.shard}</option>${others.map(n => html`<option value=${n}>${n}</option>`)}</select></label>` : null}</div>` : null}
    <div class="plan"><b>The plan</b><ol>${plan.map(line => html`<li>${line}</li>`)}</ol></div>
    <div class="row end"><button type="button" onclick=${onclose}>Not now</button><button class="go" id="start">${{ move: "Move it", split: "Split it", state: "Set " + other }[kind]}</button></div></form></${Dialog}>`;
}

function Rebalance({ onclose, act }) {
  const [plan, setPlan] = useState(null);
  useEffect(() => { ask("POST", "/v1/jobs?dry_run=true", { type: "rebalance" }).then(p => setPlan(p.items), setPlan); }, []);
  return html`<${Dialog} title="Rebalance" onclose=${onclose}>${plan === null ? html`<p>The plan is being made…</p>` : plan instanceof Error ? html`<p class="bad">${plan.message}</p>`
    : html`<div class="plan"><b>The plan</b>${plan.length ? html`<ol>${plan.map(m => html`<li>${m.shardlet} of ${m.map} goes from <${Dot} shard=${m.from}/> to <${Dot} shard=${m.to}/>, about ${number(m.rows)} rows, ${bytes(m.bytes)}</li>`)}</ol>` : html`<p>Nothing has to move.</p>`}</div>`}
    <div class="row end"><button onclick=${onclose}>Not now</button><button class="go" disabled=${!Array.isArray(plan) || !plan.length} onclick=${() => { act(() => ask("POST", "/v1/jobs", { type: "rebalance" })); onclose(); }}>Start</button></div></${Dialog}>`;
}

// ---- the page

const empty = { shards: [], maps: [], tables: [], jobs: [], routers: [], pools: [], slow: [], audit: [], lists: {}, ready: null };

function Console() {
  const [state, setState] = useState(empty), [history, setHistory] = useState([]), [problem, setProblem] = useState(""), [away, setAway] = useState("");
  const [signing, setSigning] = useState(null), [chosen, setChosen] = useState(null), [balancing, setBalancing] = useState(false), [told, setTold] = useState(null);
  const [theme, setTheme] = useState(localStorage.getItem("theme") || "");
  const before = useRef(null), busy = useRef(false), lists = useRef({}), waiting = useRef(false), seen = useRef("");
  useEffect(() => { if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme; localStorage.setItem("theme", theme); }, [theme]);

  async function refresh() {
    if (busy.current || waiting.current || document.hidden) return;
    busy.current = true;
    try {
      await get("/v1/epoch"); // a wrong token is refused once, not nine times
      const names_ = ["shards", "maps", "tables", "jobs", "routers", "pools", "slow", "audit"];
      const optional = async n => { try { return await get(`/v1/${n}?limit=${n === "jobs" ? "200&order=newest" : n === "audit" || n === "slow" ? 15 : 1000}`); } catch (error) { if (error.status === 403) return { items: [] }; throw error; } };
      const [ready, metrics, ...pages] = await Promise.all([fetch("/readyz").then(r => r.json()), fetch("/metrics").then(r => r.text()), ...names_.map(optional)]);
      const next = Object.fromEntries(names_.map((n, i) => [n, pages[i].items]));
      names = next.shards.map(s => s.name);
      // The shardlets themselves when the map has changed.
      const version = ready.epoch + " " + next.maps.map(m => m.name);
      if (lists.current.version !== version) {
        const all = await Promise.all(next.maps.map(m => whole(`/v1/maps/${part(m.name)}/shardlets`, 5000)));
        lists.current = { version, of: Object.fromEntries(next.maps.map((m, i) => [m.name, all[i]])) };
      }
      const reading = readMetrics(metrics);
      if (before.current) setHistory(h => [...h, between(before.current, reading)].slice(-80));
      before.current = reading;
      setState({ ...next, ready, lists: lists.current.of }); setAway(""); setSigning(null); seen.current = new Date().toLocaleTimeString();
    } catch (error) {
      if (error.status === 401) waiting.current = true, setSigning(sessionStorage.getItem("token") ? "That token is not known here." : "");
      else setAway((error.status ? error.message : "The router does not answer.") + (seen.current ? ` What is shown is of ${seen.current}; the page goes on asking.` : " The page goes on asking."));
    } finally { busy.current = false; }
  }
  useEffect(() => { refresh(); const timer = setInterval(refresh, 1500); return () => clearInterval(timer); }, []);
  useEffect(() => {
    const key = e => {
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
      const to = { "/": "#key", e: "#statement", m: ".bar button", j: "#h-jobs button" }[e.key];
      if (to && document.querySelector(to)) { e.preventDefault(); document.querySelector(to).focus(); }
    };
    addEventListener("keydown", key); return () => removeEventListener("keydown", key);
  }, []);
  const act = async work => { try { setProblem(""); await work(); } catch (error) { setProblem(error.message); } refresh(); };
  const { ready } = state;
  if (signing !== null) return html`<${SignIn} wrong=${signing} onsign=${token => { if (token !== null) sessionStorage.setItem("token", token); waiting.current = false; setSigning(null); refresh(); }}/>`;
  return html`<a class="skip" href="#content">To the content</a>
    <header><h1><svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true"><circle cx="11" cy="11" r="9.5" fill="none" stroke="var(--soft)" stroke-width="2"/><path d="M5 3.5 L10 9 L8 13 L13 16 L12 20.5 M10 9 L18 6.5" fill="none" stroke="var(--seam)" stroke-width="2"/></svg>Kintsugi</h1>
      ${ready ? html`<span class="none">epoch ${ready.epoch}</span><span class=${"pill" + (ready.ready && !away ? "" : " off")}>${away ? "no answer" : ready.ready ? "ready" : ready.why}</span>
      ${away ? null : html`<span class=${"pill" + (ready.store === "reachable" ? "" : " off")}>map store ${ready.store}</span>`}` : html`<span class="none">…</span>`}
      <span class="fill"></span>
      <button aria-label="colours" title="dark or light" onclick=${() => setTheme(theme === "dark" ? "light" : theme === "light" ? "" : "dark")}>${theme === "dark" ? "dark" : theme === "light" ? "light" : "auto"}</button>
      <button onclick=${() => { sessionStorage.removeItem("token"); setState(empty); setSigning(""); }}>Sign out</button></header>
    ${away || problem ? html`<div class="problem" role="alert"><span>${away || problem}</span>${problem && !away ? html`<button onclick=${() => setProblem("")}>OK</button>` : null}</div>` : null}
    <main id="content" class=${away ? "stale" : ""}>
      <${Live} history=${history}/>
      <${Shards} state=${state}/>
      <${Maps} state=${state} choose=${setChosen}/>
      <${Jobs} jobs=${state.jobs} act=${act} rebalance=${() => setBalancing(true)} tell=${setTold} few=${state.shards.length < 2}/>
      <${Find} maps=${state.maps} choose=${setChosen}/>
      <section aria-labelledby="h-slow"><h2 id="h-slow">Slow statements <small>without their literals</small></h2><${Table} items=${state.slow} none="none took long" columns=${[{ name: "at", of: s => s.at.slice(11, 19) },
        { name: "ms", n: true }, { name: "tier" }, { name: "shards" }, { name: "user" }, { name: "statement", long: true, of: s => html`<code>${s.statement}</code>` }]}/></section>
      <section aria-labelledby="h-routers"><h2 id="h-routers">Routers</h2><${Table} items=${state.routers} columns=${[{ name: "name", of: r => r.name + (r.this ? " (this one)" : "") }, { name: "epoch", n: true },
        { name: "behind", n: true, of: r => ready ? Math.max(ready.epoch - r.epoch, 0) : "" }, { name: "alive", of: r => html`<span class=${r.alive ? "good" : "bad"}>${r.alive ? "alive" : "silent"}</span>` }]}/></section>
      <section aria-labelledby="h-tables"><h2 id="h-tables">Tables</h2><${Table} items=${state.tables} columns=${[{ name: "name" }, { name: "placed", of: t => t.replicated ? "on every shard" : `by ${t.map} (${t.key.join(", ")})` }]}/></section>
      <section class="wide" aria-labelledby="h-audit"><h2 id="h-audit">Audit trail</h2><${Table} items=${state.audit} columns=${[{ name: "at", of: a => a.at.replace("T", " ").slice(0, 19) }, { name: "who" }, { name: "face" }, { name: "what", long: true }, { name: "result" }]}/></section>
    </main>
    ${chosen ? html`<${Change} key=${chosen.name} shardlet=${chosen} state=${state} act=${act} onclose=${() => setChosen(null)}/>` : null}
    ${state.jobs.filter(j => j.id === told).map(j => html`<${Story} key=${j.id} job=${j} onclose=${() => setTold(null)}/>`)}
    ${balancing ? html`<${Rebalance} act=${act} onclose=${() => setBalancing(false)}/>` : null}`;
}
render(html`<${Console}/>`, document.getElementById("console"));
