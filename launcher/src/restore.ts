import { resolve } from 'node:path'
import { reasonOf } from './reason.js'
import { restoreSnapshot } from './restore-snapshot.js'
import { readLauncherSettings } from './settings.js'

const usage = `npm run restore -- DIRECTORY

Reads a database snapshot into an empty database: that of DATABASE_URL, or the one in OVERLAY_HOME.`

const [directory, ...others] = process.argv.slice(2)
if (directory === undefined || directory.startsWith('-') || others.length > 0) {
  console.error(usage)
  process.exit(2)
}
try {
  await restoreSnapshot(readLauncherSettings(process.env), resolve(directory), (line) => console.log(line))
  console.log('restored; npm start goes on from there')
  process.exit(0) // what is still open then is not worth waiting for
} catch (err) {
  console.error(`not restored: ${reasonOf(err)}`)
  process.exit(1)
}
