import { ownProcess } from '@overlay/platform/part'
import { runProgram } from '@overlay/platform/process'
import { runPki } from './run.js'

await runProgram('pki', () => runPki(process.env, `${import.meta.dirname}/../migrations`, ownProcess))
