// Starts the product with a process for each component, and restarts one of them whenever its sources change:
// `npm run dev -- policy`. Further options are those of `npm start`.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, watch } from 'node:fs'
import { join } from 'node:path'

const SAVE_MS = 200 // an editor writes several files, or one in several steps

const [name = '', ...options] = process.argv.slice(2)
const folder = name === 'gateway' ? name : `services/${name}`
if (!existsSync(`${folder}/src/main.ts`)) {
  console.error('usage: npm run dev -- gateway|identity|pki|policy|sessions [OPTIONS]')
  process.exit(2)
}

const product = spawn('sh', ['scripts/start.sh', '--separate', ...options], { stdio: 'inherit' })
product.on('exit', (code) => process.exit(code ?? 1))
process.on('SIGINT', () => undefined) // Ctrl-C reaches the product, too
process.on('SIGTERM', () => product.kill())

function restart(): void {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  const build = `--define:OVERLAY_BUILD=${JSON.stringify({ version, revision: 'dev' })}`
  const entry = `${folder}/dist/main=${folder}/src/main.ts`
  const { status } = spawnSync('sh', ['scripts/bundle.sh', '.', entry, build], { stdio: 'inherit' })
  if (status !== 0) return // the compiler has said why; the former program goes on
  const pid = pidOf(name)
  if (pid === undefined) return
  console.log(`${name} is built, restarting`)
  process.kill(pid) // the launcher starts it again
}

function pidOf(component: string): number | undefined {
  const home = process.env.OVERLAY_HOME ?? '.overlay'
  const { processes } = JSON.parse(readFileSync(join(home, 'status.json'), 'utf8'))
  return processes.find((one: { name: string }) => one.name === component)?.pid
}

let saving: NodeJS.Timeout | undefined
for (const directory of globSync(['packages/*/src', `${folder}/src`]))
  watch(directory, { recursive: true }, (_event, file) => {
    if (!file?.endsWith('.ts') || file.endsWith('.test.ts')) return
    clearTimeout(saving)
    saving = setTimeout(restart, SAVE_MS)
  })
