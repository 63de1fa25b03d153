import type { ProcessDescription } from '@overlay/rpc'
import { type Dialogue, type Fragment, fragment } from '../http/html.js'
import { IDLE_MINUTES, MAX_ROWS, REFRESH_SECONDS } from '../limits.js'
import { type Concern, certificatesOf, concernsOf, daysUntil } from './concerns.js'
import { isService, type NetworkStatus, nameOf, releaseOf } from './status.js'

/** A cell: text, a number, or marked up. */
type Cell = string | number | Fragment

/** The whole status, what needs attention first. */
export function statusPage(status: NetworkStatus, identityName: string): Dialogue {
  const concerns = concernsOf(status)
  return {
    title: 'Status of the controller',
    shape: 'wide',
    content: fragment`<div class="bar">
<p>Answered by gateway ${status.answeredBy} at ${timeText(status.atMs)} UTC, updated every ${REFRESH_SECONDS} s.
Signed in as ${identityName}, until ${IDLE_MINUTES} minutes after the page was last opened.</p>
<form method="post" action="/status/logout"><button>Sign out</button></form>
</div>
<h2>Attention</h2>
${attention(concerns)}
${replicas(status)}
${positions(status)}
${queues(status)}
${certificates(status)}
${routers(status)}
${slowRequests(status)}
${refusals(status)}
<p><a href="/status">Refresh now</a>, <a href="/">overview</a></p>`,
  }
}

const attention = (concerns: readonly Concern[]): Fragment =>
  concerns.length === 0
    ? fragment`<p class="box fine">Nothing needs attention.</p>`
    : fragment`${concerns.map(
        ({ level, text }) =>
          fragment`<p class="box ${level === 'critical' ? 'alert' : 'warning'}"><strong>${level === 'critical' ? 'Critical' : 'Warning'}:</strong> ${text}</p>\n`,
      )}`

const replicas = ({ replicas, atMs }: NetworkStatus): Fragment =>
  section(
    'Replicas',
    ['Service', 'Process', 'Address', 'State', 'Version', 'Node', 'Up', 'Database', 'Bus'],
    replicas.map(({ service, address, process, problem }) => {
      if (!process) return [service, '–', address, bad(problem ?? 'unavailable'), '–', '–', '–', '–', '–']
      const { pool, nodeVersion, startedAtMs, bus } = process
      const connections = pool ? `${pool.busy} busy, ${pool.idle} idle, ${pool.waiting} waiting` : '–'
      const up = span(atMs - startedAtMs)
      const state = bus === 'unavailable' ? bad(bus) : bus || '–'
      return [
        service,
        nameOf(process),
        address,
        'answers',
        releaseOf(process),
        nodeVersion,
        up,
        connections,
        state,
      ]
    }),
    'Other gateways are not listed: each one shows itself.',
  )

const positions = ({ follows, replicas }: NetworkStatus): Fragment => {
  const own = replicas.flatMap(({ service, process }) =>
    process && isService(service)
      ? [[service, nameOf(process), fragment`${service} (its own)`, process.position, '–', '–', '–']]
      : [],
  )
  const followed = follows.map(
    ({ replica: { service, process }, schema, position, head, lateMs, silentMs }) => [
      service,
      process ? nameOf(process) : '–',
      schema,
      position ?? bad('not loaded'),
      head === undefined || position === undefined ? 'unknown' : Math.max(0, head - position),
      lateMs > 0 ? bad(span(lateMs)) : '0 s',
      silentMs === undefined ? 'never' : `${span(silentMs)} ago`,
    ],
  )
  return section(
    'Positions',
    ['Service', 'Process', 'Changes of', 'Position', 'Behind by', 'Lag', 'Last heard'],
    [...own, ...followed],
    'Lag: for how long changes are missing that an earlier view of this page has shown.',
  )
}

const queues = ({ replicas, atMs }: NetworkStatus): Fragment =>
  section(
    'Queues',
    ['Service', 'Process', 'Queue', 'Running', 'Waiting', 'Refused', 'Last refusal'],
    replicas.flatMap(({ service, process }) =>
      (process?.queues ?? []).map(({ name, running, waiting, refused, refusedAtMs }) => [
        service,
        process ? nameOf(process) : '–',
        name,
        running,
        waiting,
        refused > 0 ? bad(String(refused)) : 0,
        refusedAtMs === undefined ? 'never' : `${span(atMs - refusedAtMs)} ago`,
      ]),
    ),
  )

const certificates = (status: NetworkStatus): Fragment =>
  section(
    'Certificates',
    ['Certificate', 'Days left', 'Expires (UTC)'],
    certificatesOf(status).map(({ name, expiresAtMs }) => {
      const days = daysUntil(expiresAtMs, status.atMs)
      return [name, days < 0 ? bad('expired') : days, timeText(expiresAtMs)]
    }),
  )

function routers({ replicas, offlineRouters }: NetworkStatus): Fragment {
  const rows = replicas.flatMap(({ service, process }) =>
    process?.routers === undefined ? [] : [[service, nameOf(process), process.routers]],
  )
  const offline =
    offlineRouters === undefined
      ? 'Unknown: sessions does not answer.'
      : offlineRouters.total === 0
        ? 'No edge router is offline.'
        : `Offline: ${offlineRouters.total}. ${offlineRouters.names.join(', ')}${offlineRouters.total > offlineRouters.names.length ? ', …' : ''}`
  return section('Routers', ['Service', 'Process', 'Connected routers'], rows, offline)
}

const slowRequests = ({ replicas }: NetworkStatus): Fragment =>
  section(
    'Slow requests',
    ['Ended (UTC)', 'Service', 'Process', 'Operation', 'Took', 'Result', 'Request id'],
    newest(
      replicas,
      (process) => process.slowRequests,
      ({ operation, durationMs, result, requestId }) => [operation, `${durationMs} ms`, result, requestId],
    ),
    'Requests and calls between processes that took half a second or more: the last 50 of each process, the last 100 of all.',
  )

const refusals = ({ replicas }: NetworkStatus): Fragment =>
  section(
    'Refusals',
    ['Time (UTC)', 'Service', 'Process', 'What', 'Reason', 'Source', 'More'],
    newest(
      replicas,
      (process) => process.refusals,
      ({ message, reason, sourceAddress, facts }) => {
        const members = Object.entries(facts).map(([name, value]) => `${name}: ${value}`)
        return [
          message,
          reason || '–',
          sourceAddress || '–',
          fragment`<span class="small">${members.join(', ')}</span>`,
        ]
      },
    ),
    'The last 50 of each process, the last 100 of all. The logs have all of them.',
  )

/** Rows of the newest items of all processes: time, service, process, and further cells. */
const newest = <T extends { readonly atMs: number }>(
  replicas: NetworkStatus['replicas'],
  itemsOf: (process: ProcessDescription) => readonly T[],
  cellsOf: (item: T) => readonly Cell[],
): readonly (readonly Cell[])[] =>
  replicas
    .flatMap(({ service, process }) =>
      process ? itemsOf(process).map((item) => ({ service, process, item })) : [],
    )
    .sort((a, b) => b.item.atMs - a.item.atMs)
    .slice(0, MAX_ROWS)
    .map(({ service, process, item }) => [timeText(item.atMs), service, nameOf(process), ...cellsOf(item)])

const bad = (text: string): Fragment => fragment`<span class="bad">${text}</span>`

function section(
  title: string,
  heads: readonly string[],
  rows: readonly (readonly Cell[])[],
  note?: string,
): Fragment {
  const table =
    rows.length === 0
      ? fragment`<p>None.</p>`
      : fragment`<div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
<thead><tr>${heads.map((head) => fragment`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>
${rows.map((cells) => fragment`<tr>${cells.map(cellOf)}</tr>\n`)}</tbody>
</table></div>`
  return fragment`<h2>${title}</h2>
${note === undefined ? '' : fragment`<p class="small">${note}</p>`}
${table}
`
}

const cellOf = (cell: Cell): Fragment =>
  typeof cell === 'number' ? fragment`<td class="number">${cell}</td>` : fragment`<td>${cell}</td>`

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** A time span in its largest unit, rounded down. */
export function span(ms: number): string {
  for (const [unit, length] of units) if (ms >= length) return `${Math.floor(ms / length)}\u00a0${unit}`
  return `${Math.max(0, Math.round(ms))}\u00a0ms`
}

/** In UTC, to the second. */
export const timeText = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
