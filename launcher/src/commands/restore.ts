import { resolve } from 'node:path'
import { environmentWarnings, readLauncherSettings } from '../settings/settings.js'
import { restoreSnapshot } from './restore-snapshot.js'
import { runCommand } from './run-command.js'

const usage = `npm run restore -- DIRECTORY

Restores a backup or a database snapshot into an empty database: that of DATABASE_URL, or a new one in OVERLAY_HOME.
OVERLAY_HOME is a new directory.`

const [directory, ...rest] = process.argv.slice(2)
if (directory === undefined || directory.startsWith('-') || rest.length > 0) {
  console.error(usage)
  process.exit(2)
}
await runCommand('not restored', async () => {
  for (const warning of environmentWarnings(process.env)) console.error(`warning: ${warning}`)
  await restoreSnapshot(readLauncherSettings(process.env), resolve(directory), (line) => console.log(line))
  console.log('restored, with the user names and passwords of that time. To start from it: npm start')
})
