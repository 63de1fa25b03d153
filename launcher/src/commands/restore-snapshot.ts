import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import {
  checkContents,
  type ImportOptions,
  importSnapshot,
  readManifest,
  requireUnused,
} from '@overlay/maintenance/snapshot'
import { migrateTo, prepareSchemas } from '@overlay/store/postgres/migrate'
import { type Home, openHome } from '../home/home.js'
import { passwordFile, secretsFile } from '../home/home-files.js'
import { requireKeySecrets } from '../home/key-secrets.js'
import { readSecrets, secretsForNewHome } from '../home/secrets.js'
import { onDatabase } from '../servers/external-servers.js'
import { withPostgres } from '../servers/launch-servers.js'
import { migrationsOf, rolesIn, services } from '../servers/schemas.js'
import { type LauncherSettings, logLimits } from '../settings/settings.js'
import { accountsOf } from '../system/account.js'
import { ignoreMissing } from '../system/files.js'

/**
 * Reads a snapshot into an empty database. Checks all of it before it writes anything. A new home takes the secrets of
 * a backup.
 */
export async function restoreSnapshot(
  settings: Pick<LauncherSettings, 'databaseUrl' | 'home' | 'logMib' | 'logFiles' | 'uid'>,
  directory: string,
  print: (line: string) => void,
): Promise<void> {
  if (!(await stat(directory).catch(ignoreMissing))) throw new Error(`${directory} does not exist`)
  const manifest = await readManifest(directory)
  if (Object.keys(manifest.schemas).sort().join() !== [...services].sort().join())
    throw new Error(`the snapshot has other schemas than ${services.join(', ')}`)
  await checkContents(directory, manifest)
  print(`the files of ${manifest.madeAt} are complete`)

  const stored = await readSecrets(join(directory, secretsFile))
  const initial = stored && secretsForNewHome(stored.secrets)
  const home = await openHome(settings.home, accountsOf(settings.uid), initial)
  try {
    await requireKeySecrets(directory, manifest, home.secrets).catch((cause: unknown) => {
      const file = home.path(secretsFile)
      const hint = stored ? 'set OVERLAY_HOME to a new directory' : 'put it there first'
      throw new Error(`${file} must be that of the installation which made the snapshot: ${hint}`, { cause })
    })
    const { databaseUrl } = settings
    const isExternal = databaseUrl !== undefined
    const into = (url: string) => restore(url, { directory, manifest, isExternal }, home, print)
    await (isExternal ? into(databaseUrl) : withPostgres(home, logLimits(settings), print, into))
    const password = await readFile(join(directory, passwordFile), 'utf8').catch(ignoreMissing)
    if (password !== undefined) await home.write(passwordFile, password)
  } finally {
    await home.release()
  }
}

async function restore(
  ownerUrl: string,
  snapshot: ImportOptions & { readonly isExternal: boolean },
  home: Home,
  print: (line: string) => void,
): Promise<void> {
  const { manifest, isExternal } = snapshot
  const prepare = async (): Promise<void> => {
    await requireUnused(ownerUrl, Object.keys(manifest.schemas))
    await prepareSchemas(ownerUrl, Object.values(rolesIn(ownerUrl, home.secrets)))
  }
  await (isExternal ? onDatabase(ownerUrl, home, prepare) : prepare())
  for (const [schema, { migrations }] of Object.entries(manifest.schemas))
    await migrateTo(ownerUrl, schema, migrationsOf(schema), migrations)
  print('created schemas and roles')
  await importSnapshot(ownerUrl, snapshot)
  const tables = Object.values(manifest.schemas).flatMap(({ tables }) => tables)
  print(`wrote ${tables.reduce((sum, { rows }) => sum + rows, 0)} rows into ${tables.length} tables`)
}
