import { columns } from '@overlay/process/columns'
import type { ProcessStatus, Status } from './read-status.js'

const summaries: Readonly<Record<Status['state'], string>> = {
  none: 'is not installed here: npm start creates an installation',
  stopped: 'is stopped',
  starting: 'is starting',
  unhealthy: 'is running, but not healthy',
  healthy: 'is running and healthy',
}

/** For people. */
export function statusText(status: Status, now: Date): string {
  const { state, start, home, processes, certificates } = status
  const isRunning = processes.length > 0
  const name = start ? `overlay ${start.version} (${start.revision})` : 'overlay'
  const since = (time: string): string => span(now.getTime() - Date.parse(time))
  const saved = (one: Status['lastBackup'], otherwise: string): string =>
    one ? `${since(one.at)} ago: ${one.path}` : otherwise
  const rows: (readonly [string, string])[] = [['home', home]]
  if (start) {
    rows.push(['address', `https://${start.address}`])
    if (isRunning) rows.push(['status page', `https://${start.address}/status`])
    const routers = isRunning ? `, ${status.routersConnected ?? 0} connected` : ''
    rows.push(['routers', `at ${start.ctrlAddress}${routers}`])
    if (isRunning) rows.push(['launcher', `process ${start.launcher}, up ${since(start.startedAt)}`])
    else if (state === 'stopped') rows.push(['stopped', stopText(start, since)])
    if (isRunning && start.metricsAddress) rows.push(['metrics', `http://${start.metricsAddress}/metrics`])
    rows.push(['database', `${isRunning ? `${status.database}, ` : ''}${start.database}`])
    if (isRunning)
      rows.push([
        'bus',
        status.bus === 'ok' || status.bus === 'unknown' ? status.bus : `${status.bus}: changes arrive later`,
      ])
  }
  for (const { role, expiresAt } of certificates)
    rows.push(['certificate', `${role}: ${daysUntil(expiresAt, now)} (${expiresAt.slice(0, 10)})`])
  for (const { role, problem } of status.keyConcerns ?? [])
    rows.push(['ATTENTION', `${role} key: ${problem}: npm run keys`])
  if (state !== 'none') {
    rows.push(['last backup', saved(status.lastBackup, 'none: npm run backup')])
    rows.push(['last snapshot', saved(status.lastSnapshot, 'none')])
  }
  const table = isRunning ? ['', ...processTable(processes, since)] : []
  return [`${name} ${summaries[state]}`, '', ...indented(rows), ...table].join('\n')
}

function stopText(
  { startedAt, stoppedAt }: NonNullable<Status['start']>,
  since: (time: string) => string,
): string {
  if (stoppedAt !== undefined) return `${since(stoppedAt)} ago`
  return `without an orderly stop; started ${since(startedAt)} ago`
}

function processTable(processes: readonly ProcessStatus[], since: (time: string) => string): string[] {
  const lines = processes.map(({ name, pid, startedAt, restarts, ready, problems }) => {
    const note = problems.length > 0 ? `: ${problems.join(', ')}` : ''
    const up = startedAt === undefined ? '-' : since(startedAt)
    return [name, String(pid ?? '-'), up, String(restarts), `${ready ? 'ready' : 'NOT READY'}${note}`]
  })
  return indented([['process', 'pid', 'up', 'restarts', 'state'], ...lines])
}

const indented = (rows: readonly (readonly string[])[]): string[] => columns(rows).map((line) => `  ${line}`)

const units = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
] as const

/** A time span, rounded down to its largest unit. */
function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  for (const [unit, length] of units) if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`
  return `${seconds} s`
}

function daysUntil(time: string, now: Date): string {
  const days = Math.floor((Date.parse(time) - now.getTime()) / 86_400_000)
  return days < 0 ? 'EXPIRED' : `${days} days left`
}
