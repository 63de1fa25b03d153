import { join } from 'node:path'
import { build } from 'esbuild'
import { services } from '../../launcher/src/servers/schemas.js'

const root = join(import.meta.dirname, '../..')
const replacement = join(import.meta.dirname, 'entity.ts')
const components = ['gateway', ...services.map((service) => `services/${service}`)]
const banner = `
  import { createRequire as requireFrom } from 'node:module'
  const require = requireFrom(import.meta.url), __dirname = import.meta.dirname, __filename = import.meta.filename`

/** Bundles every process with an extra field in each kind. Returns the path of the bundle below the folder of a process. */
export async function buildWithExtraField(): Promise<string> {
  await build({
    absWorkingDir: root,
    entryPoints: components.map((component) => ({
      in: `${component}/src/main.ts`,
      out: `${component}/dist-extra-field/main`,
    })),
    outdir: root,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    conditions: ['source'],
    external: ['@node-rs/argon2', 'pg-native'],
    banner: { js: banner },
    logLevel: 'warning',
    plugins: [
      {
        name: 'extra-field',
        setup(options) {
          options.onResolve({ filter: /\/entity\.js$/ }, ({ path, importer }) =>
            path.endsWith('kernel/entity.js') && importer !== replacement ? { path: replacement } : undefined,
          )
        },
      },
    ],
  })
  return 'dist-extra-field/main.js'
}
