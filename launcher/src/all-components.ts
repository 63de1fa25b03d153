import { join } from 'node:path'
import { runGateway } from '@overlay/gateway/run'
import { runIdentity } from '@overlay/identity/run'
import { runPki } from '@overlay/pki/run'
import { runPolicy } from '@overlay/policy/run'
import { guardProcess, openLog, processSettings, readSettings, runProgram } from '@overlay/process'
import { type ComponentName, type RunComponent, shareProcess } from '@overlay/process/component'
import { openTracing } from '@overlay/process/tracing'
import { runSessions } from '@overlay/sessions/run'
import { projectRoot } from './system/project-root.js'

/** All components in one process. The launcher passes the environment of each component as JSON. */
await runProgram('overlay', run)

async function run(): Promise<void> {
  const settings = readSettings(processSettings, process.env)
  const components: Record<ComponentName, NodeJS.ProcessEnv> = JSON.parse(
    process.env.OVERLAY_COMPONENTS ?? '',
  )
  delete process.env.OVERLAY_COMPONENTS // each component gets its own secrets only
  const log = openLog('overlay', { level: settings.logLevel, format: settings.logFormat })
  guardProcess(log)
  await using _tracing = await openTracing({ name: 'overlay', settings, log })
  const services: Record<Exclude<ComponentName, 'gateway'>, typeof runPki> = {
    identity: runIdentity,
    pki: runPki,
    policy: runPolicy,
    sessions: runSessions,
  }
  const envOf = (component: ComponentName): NodeJS.ProcessEnv => ({
    ...process.env,
    ...components[component],
  })
  const runs = new Map<ComponentName, RunComponent>([['gateway', (own) => runGateway(envOf('gateway'), own)]])
  for (const [name, run] of Object.entries(services)) {
    const component = name as keyof typeof services
    const migrations = join(projectRoot, 'services', component, 'migrations')
    runs.set(component, (own) => run(envOf(component), migrations, own))
  }
  await shareProcess(runs, { opsListen: settings.opsListen, log })
}
