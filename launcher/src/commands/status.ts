import { parseArgs } from 'node:util'
import { readLauncherSettings } from '../settings/settings.js'
import { readStatus } from './read-status.js'
import { runCommand } from './run-command.js'
import { statusText } from './status-text.js'

const usage = `npm run status [-- --json]

Prints the state of the installation in OVERLAY_HOME. Exits with 0 if it is healthy, otherwise with 1.
For scripts: npm run --silent status -- --json`

await runCommand('no status', async () => {
  const { values } = parseArgs({
    options: { json: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  })
  if (values.help) return console.log(usage)
  const status = await readStatus(readLauncherSettings(process.env))
  console.log(values.json ? JSON.stringify(status, null, 2) : statusText(status, new Date()))
  process.exitCode = status.state === 'healthy' ? 0 : 1
})
