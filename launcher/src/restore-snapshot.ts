import { isSharedSeal, unseal } from '@overlay/platform/postgres'
import { migrateTo, prepareSchemas } from '@overlay/platform/postgres/migrate'
import {
  checkContents,
  type ImportOptions,
  importSnapshot,
  type Manifest,
  readManifest,
  requireUnused,
  storedRows,
} from '@overlay/platform/snapshot'
import { accountsOf } from './account.js'
import { onDatabase } from './external-servers.js'
import { type Home, openHome } from './home.js'
import { migrationsOf, rolesIn, services } from './schemas.js'
import { launchPostgres } from './servers.js'
import { type LauncherSettings, logLimits } from './settings.js'

/** Reads a snapshot into an empty database. Checks all of it before it writes anything. */
export async function restoreSnapshot(
  settings: Pick<LauncherSettings, 'databaseUrl' | 'home' | 'logMib' | 'logFiles' | 'uid'>,
  directory: string,
  print: (line: string) => void,
): Promise<void> {
  const manifest = await readManifest(directory)
  if (Object.keys(manifest.schemas).sort().join() !== [...services].sort().join())
    throw new Error(`the snapshot has other schemas than ${services.join(', ')}`)
  await checkContents(directory, manifest)
  print(`snapshot of ${manifest.madeAt}: whole`)

  const home = await openHome(settings.home, accountsOf(settings.uid))
  try {
    await requireKeySecrets(directory, manifest, home)
    const own =
      settings.databaseUrl === undefined ? await launchPostgres(home, logLimits(settings), print) : undefined
    try {
      const isExternal = own === undefined
      await restore(settings.databaseUrl ?? own?.url ?? '', { directory, manifest, isExternal }, home, print)
    } finally {
      await own?.stop()
    }
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
  print('schemas and roles, as they were')
  await importSnapshot(ownerUrl, snapshot)
  const tables = Object.values(manifest.schemas).flatMap(({ tables }) => tables)
  print(`${tables.reduce((sum, { rows }) => sum + rows, 0)} rows in ${tables.length} tables`)
}

/**
 * Private keys and second factors stay encrypted in a snapshot. With other secrets the product could not start, and
 * logins with a second factor would fail.
 */
async function requireKeySecrets(
  directory: string,
  manifest: Manifest,
  { secrets: { keySecrets }, path }: Home,
): Promise<void> {
  try {
    for await (const { id, private_key } of storedRows(directory, manifest, 'pki', 'key'))
      unseal(keySecrets.pki, id ?? '', private_key ?? '')
    const factors = storedRows(directory, manifest, 'identity', 'second_factor')
    for await (const { identity_id, sealed } of factors) {
      const secret = isSharedSeal(sealed ?? '') ? keySecrets.pki : keySecrets.identity
      unseal(secret, identity_id ?? '', sealed ?? '')
    }
  } catch (cause) {
    const file = path('secrets.json')
    throw new Error(`${file} must be that of the installation which made the snapshot: put it there first`, {
      cause,
    })
  }
}
