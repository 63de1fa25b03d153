import { join } from 'node:path'
import { runGateway } from '@overlay/gateway/run'
import { runIdentity } from '@overlay/identity/run'
import { runPki } from '@overlay/pki/run'
import { runPolicy } from '@overlay/policy/run'
import { guardProcess, openLog, processSettings, readSettings, runProgram } from '@overlay/process'
import { type PartName, type RunPart, shareProcess } from '@overlay/process/component'
import { openTracing } from '@overlay/process/tracing'
import { runSessions } from '@overlay/sessions/run'
import { projectRoot } from './system/project-root.js'

/** All parts in one process. The launcher passes the environment of each part as JSON. */
await runProgram('overlay', run)

async function run(): Promise<void> {
  const settings = readSettings(processSettings, process.env)
  const parts: Record<PartName, NodeJS.ProcessEnv> = JSON.parse(process.env.OVERLAY_PARTS ?? '')
  delete process.env.OVERLAY_PARTS // each part gets its own secrets only
  const log = openLog('overlay', { level: settings.logLevel, format: settings.logFormat })
  guardProcess(log)
  await using _tracing = await openTracing({ name: 'overlay', settings, log })
  const services: Record<Exclude<PartName, 'gateway'>, typeof runPki> = {
    identity: runIdentity,
    pki: runPki,
    policy: runPolicy,
    sessions: runSessions,
  }
  const envOf = (part: PartName): NodeJS.ProcessEnv => ({ ...process.env, ...parts[part] })
  const runs = new Map<PartName, RunPart>([['gateway', (own) => runGateway(envOf('gateway'), own)]])
  for (const [name, run] of Object.entries(services)) {
    const part = name as keyof typeof services
    const migrations = join(projectRoot, 'services', part, 'migrations')
    runs.set(part, (own) => run(envOf(part), migrations, own))
  }
  await shareProcess(runs, { opsListen: settings.opsListen, log })
}
