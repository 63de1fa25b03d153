import { ownProcess } from '@overlay/platform/part'
import { endProcess } from '@overlay/platform/process'
import { runPki } from './run.js'

await runPki(process.env, `${import.meta.dirname}/../migrations`, ownProcess)
endProcess()
