import { resolve } from 'node:path'
import { errorText } from './error-text.js'
import { restoreSnapshot } from './restore-snapshot.js'
import { readLauncherSettings } from './settings.js'

const usage = `npm run restore -- DIRECTORY

Reads a database snapshot into an empty database: that of DATABASE_URL, or the one in OVERLAY_HOME.`

const [directory, ...rest] = process.argv.slice(2)
if (directory === undefined || directory.startsWith('-') || rest.length > 0) {
  console.error(usage)
  process.exit(2)
}
try {
  await restoreSnapshot(readLauncherSettings(process.env), resolve(directory), (line) => console.log(line))
  console.log('restored; npm start goes on from there')
  process.exit(0) // does not wait for open handles
} catch (err) {
  console.error(`not restored: ${errorText(err)}`)
  process.exit(1)
}
