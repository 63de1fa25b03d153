import { runProgram } from '@overlay/process'
import { ownProcess } from '@overlay/process/component'
import { runPki } from './run.js'

await runProgram('pki', () => runPki(process.env, `${import.meta.dirname}/../migrations`, ownProcess))
