import { parseArgs } from 'node:util'
import { errorText } from './error-text.js'
import { readStatus } from './read-status.js'
import { readLauncherSettings } from './settings.js'
import { statusText } from './status-text.js'

const usage = `npm run status [-- --json]

Prints the state of the installation in OVERLAY_HOME. Exits with 0 if it is healthy, otherwise with 1.
For scripts: npm run --silent status -- --json`

try {
  const { values } = parseArgs({
    options: { json: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
  })
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const status = await readStatus(readLauncherSettings(process.env))
  console.log(values.json ? JSON.stringify(status, null, 2) : statusText(status, new Date()))
  process.exit(status.state === 'healthy' ? 0 : 1)
} catch (err) {
  console.error(`no status: ${errorText(err)}`)
  process.exit(1)
}
