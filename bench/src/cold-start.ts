import { setTimeout as pause } from 'node:timers/promises'
import { samplesOf } from '@overlay/launcher/testing'
import type { Api } from './api.js'
import { openSessions } from './open-sessions.js'
import { processOf } from './processor-time.js'
import { components, productOf } from './product.js'
import { digits } from './report.js'
import type { Side } from './turns.js'

const sessionsOpen = 20_000
const perIdentity = 10
const LOOK_MS = 20
const QUIET_MS = 1000
/** CPU within that time at which a process counts as quiet. */
const quietCpuMs = 60
const LONGEST_MS = 600_000

/** Opens sessions, then kills the process of one component after the other, and prints what its successor takes to start. */
export async function measureColdStart(
  sides: readonly Side[],
  repeat: number,
  print: (line: string) => void,
): Promise<void> {
  for (const side of sides) {
    const servicesOf = async (api: Api) =>
      (await api.request<{ id: string }[]>('GET', `/services?limit=${perIdentity}`)).map(({ id }) => id)
    const opened = await openSessions(side, sessionsOpen, perIdentity, servicesOf)
    print(`${side.name}: ${opened} sessions opened`)
    for (let round = 0; round < repeat; round++)
      for (const component of components) print(`${side.name}: ${await startOf(side, component)}`)
  }
}

async function startOf({ running }: Side, component: string): Promise<string> {
  const { pids, metricsUrl } = productOf(running)
  const find = () => processOf(pids, component)
  const former = find()
  if (!former) throw new Error(`${component} has no process of its own: use --separate 1`)
  process.kill(former.pid, 'SIGKILL')
  const started = performance.now()
  const since = (): number => performance.now() - started

  for (let next = find(); ; next = find()) {
    if (next && next.pid !== former.pid && (await isReady(metricsUrl, component))) break
    await pauseUnlessLate(since(), LOOK_MS)
  }
  const readyMs = since()
  for (;;) {
    const [last, lastMs] = [find(), since()]
    await pauseUnlessLate(lastMs, QUIET_MS)
    const now = find()
    if (!last || !now || now.pid !== last.pid || now.ms - last.ms >= quietCpuMs) continue
    const stopMs = await longestStopMs(metricsUrl, component)
    return `${component}: ready after ${digits(readyMs)} ms, quiet after ${digits(lastMs)} ms, ${digits(last.ms)} ms of CPU, largest resident set ${digits(now.peakMib)} MiB, longest stop of the event loop ${digits(stopMs)} ms`
  }
}

async function pauseUnlessLate(waitedMs: number, ms: number): Promise<void> {
  if (waitedMs > LONGEST_MS) throw new Error('a process has not started in time')
  await pause(ms)
}

async function isReady(metricsUrl: string, component: string): Promise<boolean> {
  const answer = await fetch(`${metricsUrl}/healthz/ready`)
  const { checks } = (await answer.json()) as { readonly checks: Readonly<Record<string, string>> }
  return checks[component] === 'ok'
}

/** Since its start: nothing else reads the metrics. */
async function longestStopMs(metricsUrl: string, component: string): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text()
  const samples = samplesOf(text, 'nodejs_eventloop_lag_max_seconds')
  const sample = samples.find(({ labels }) => labels.includes(`process="${component}"`))
  if (!sample) throw new Error(`${component} has no metric of the event loop`)
  return sample.value * 1000
}
