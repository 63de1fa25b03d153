import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { requireInstallation } from '../home/installation.js'
import { noteBackup } from '../home/last-backup.js'
import { readLauncherSettings } from '../settings/settings.js'
import { countOf } from './parse-options.js'
import { runCommand } from './run-command.js'
import { removeOldBackups, saveBackup } from './save-backup.js'
import { withDatabase } from './with-database.js'

const usage = `npm run backup [-- [DIRECTORY] [--keep N]]

Writes a complete backup of the installation in OVERLAY_HOME into a new directory below DIRECTORY (backups in
OVERLAY_HOME), while the product runs or is stopped. DATABASE_URL must be set as for the product.

  --keep N   then removes all but the N newest backups below DIRECTORY`

const print = (line: string): void => console.log(line)

await runCommand('no backup', run)

async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { keep: { type: 'string' }, help: { type: 'boolean', default: false } },
    allowPositionals: true,
  })
  if (values.help) return print(usage)
  if (positionals.length > 1) throw new Error('only one DIRECTORY is possible')
  const keep = values.keep === undefined ? undefined : countOf('--keep', values.keep)
  const settings = readLauncherSettings(process.env)
  const { home } = settings
  const directory = positionals[0] === undefined ? join(home, 'backups') : resolve(positionals[0])
  await requireInstallation(home)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => stop.abort(new Error(`stopped by ${signal}`)))

  const { path, at, rows, bytes } = await withDatabase(settings, print, (ownerUrl) =>
    saveBackup({ ownerUrl, home, directory, signal: stop.signal }),
  )
  await noteBackup(home, { path, at })
  const removed = keep === undefined ? [] : await removeOldBackups(directory, keep)
  print(`
backup of ${at}, complete and verified: ${rows} rows, ${Math.ceil(bytes / 1024)} KiB

  ${path}

It contains the secrets of this installation: who can read it controls the network. Keep a copy on another machine.
To restore it, where OVERLAY_HOME is a new directory:

  npm run restore -- ${path}`)
  if (removed.length > 0) print(`\nremoved older backups: ${removed.join(', ')}`)
}
