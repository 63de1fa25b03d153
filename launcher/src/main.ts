import { runCommand } from './commands/run-command.js'
import { readArguments, usage } from './product/arguments.js'
import { startProduct } from './product/start-product.js'
import { welcome } from './product/welcome.js'
import { environmentWarnings, readLauncherSettings } from './settings/settings.js'

const started = Date.now()
const print = (line: string): void => console.log(`${((Date.now() - started) / 1000).toFixed(1)} s  ${line}`)

await runCommand('cannot start', run)

async function run(): Promise<void> {
  const { help, layout } = readArguments(process.argv.slice(2))
  if (help) return console.log(usage)
  const settings = readLauncherSettings(process.env)
  for (const warning of environmentWarnings(process.env)) console.error(`warning: ${warning}`)
  const signal = firstSignal()
  // until the product runs, the end of this process ends all others
  const product = await Promise.race([startProduct(settings, layout, print), signal])
  if (typeof product === 'string') process.exit(130)
  console.log(await welcome(settings, product, { isTerminal: process.stdout.isTTY }))
  print(`${await signal}, stopping`)
  await product.stop()
  print('stopped')
}

/** npm and the terminal may both pass on the same Ctrl-C, so a second signal is ignored. */
function firstSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(signal))
  })
}
