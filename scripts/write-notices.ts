// Writes which packages of others the programs of the image contain: `node scripts/write-notices.ts METAFILE DIRECTORY`
// writes THIRD-PARTY-NOTICES with their licences, and sbom.cdx.json, a CycloneDX document. Fails for a licence that is
// not on the list below.
import { globSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

const allowed = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'Unlicense',
])
/** Of packages that offer several. */
const chosen: Readonly<Record<string, string>> = { '(BSD-3-Clause OR GPL-2.0)': 'BSD-3-Clause' }

interface Package {
  readonly name: string
  readonly version: string
  readonly licence: string
  readonly folder: string
}

interface Metafile {
  readonly outputs: Readonly<
    Record<string, { readonly inputs: Readonly<Record<string, { bytesInOutput: number }>> }>
  >
}

const [metafile = '', directory = ''] = process.argv.slice(2)
const { outputs }: Metafile = JSON.parse(readFileSync(metafile, 'utf8'))

const bundled = Object.entries(outputs)
  .filter(([program]) => !program.includes('/launcher/dist/'))
  .flatMap(([, { inputs }]) => Object.entries(inputs))
  .filter(([file, { bytesInOutput }]) => bytesInOutput > 0 && file.includes('node_modules/'))
  .map(([file]) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? '')
const argon2 = realpathSync('services/identity/node_modules/@node-rs/argon2')
const native = globSync(join(dirname(argon2), '*')).map((folder) => relative('.', realpathSync(folder)))

const packages = [...new Set([...bundled, ...native])]
  .map(packageIn)
  .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  .filter((one, i, all) => i === 0 || keyOf(one) !== keyOf(all[i - 1] ?? one))

function packageIn(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const licence: string = chosen[license] ?? String(license).replace(/^\((.*)\)$/, '$1')
  if (!licence.split(' AND ').every((one) => allowed.has(one)))
    throw new Error(`licence of ${name} ${version} is not on the list: ${licence}`)
  return { name, version, licence, folder }
}

function keyOf({ name, version }: Package): string {
  return `${name}@${version}`
}

function textsIn(folder: string): string {
  const { author = 'unnamed' } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
  const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return texts.join('\n\n') || `The package contains no text of its licence. Author: ${author.name ?? author}`
}

const { name, version, license } = JSON.parse(readFileSync('package.json', 'utf8'))
const line = '-'.repeat(80)
const notices = packages.map(
  (one) => `${line}\n${one.name} ${one.version} (${one.licence})\n${line}\n\n${textsIn(one.folder)}\n`,
)
writeFileSync(
  join(directory, 'THIRD-PARTY-NOTICES'),
  `The programs of ${name} ${version} contain these packages.\n\n${notices.join('\n')}`,
)

const lockfile = readFileSync('pnpm-lock.yaml', 'utf8')

function componentOf({ name, version, licence }: Package) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const entry = lockfile.indexOf(`\n  '${name}@${version}':\n`)
  const start = entry >= 0 ? entry : lockfile.indexOf(`\n  ${name}@${version}:\n`)
  const [, digest] = /integrity: sha512-([^}, ]+)/.exec(lockfile.slice(start, start + 400)) ?? []
  if (start < 0 || digest === undefined) throw new Error(`pnpm-lock.yaml has no ${name} ${version}`)
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    licenses: [licence.includes(' ') ? { expression: licence } : { license: { id: licence } }],
    purl,
  }
}

const components = packages.map(componentOf)
const product = `pkg:generic/${name}@${version}`
const bom = {
  $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: {
    component: {
      type: 'application',
      'bom-ref': product,
      name,
      version,
      licenses: [{ license: { id: license } }],
      purl: product,
    },
  },
  components,
  dependencies: [{ ref: product, dependsOn: components.map(({ purl }) => purl) }],
}
writeFileSync(join(directory, 'sbom.cdx.json'), `${JSON.stringify(bom, null, 2)}\n`)
