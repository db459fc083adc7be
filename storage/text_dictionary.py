"""What packed texts begin with in the compressor's mind: phrases that logs of agents are made of.

Short sessions gain most: a run of texts can only repeat itself, not what all such logs have in common.
Hand-written and general; the likeliest stands last, where it is cheapest to point to. A changed dictionary
makes stored texts unreadable: raise INDEX_VERSION with it.
"""

from __future__ import annotations

from typing import Final

_PROSE: Final = """
I'll start by looking at the project structure to understand how this works. Let me check the existing
implementation before making changes. Now let me update the code. I can see the problem: the function
returns
None when there is no value. This should be fixed by adding a check for the error case. Let me run the
tests to
make sure that everything still works. All tests are passing now. Here is a summary of the changes I've
made:
1. **Added** a new function that will be used for the request. 2. **Updated** the documentation and the
README.
3. **Fixed** the issue with the configuration file. Would you like me to continue with the next step?
The following files have been modified. Please let me know if you have any questions or if you need more
information about the implementation. You are a coding agent. You should always use the tools that are
available
instead of guessing. Do not include any other text in your response. If the user asks for help, inform
them of the
following: important: this is the current working directory of the user's request. When you are done with
the task,
think about whether there is something else that could be improved, because it would not be possible without
their own data. We have already seen that these two are different from each other, so there must be
another way to
find out which one is used first. It looks like the server has been started in the background with the
default
settings. Remember to commit and push your changes to the main branch and create a pull request on GitHub.
## Summary
## Overview
### Key features
- **Type safety**:
- [ ] todo - [x] done
| Name | Description | Type | Default |
| --- | --- | --- | --- |
"""
_SHELL: Final = """
$ git status
On branch main
Your branch is up to date with 'origin/main'.
Changes not staged for commit:
  (use "git add <file>..." to update what will be committed)
  (use "git restore <file>..." to discard changes in working directory)
        modified:   src/components/
Untracked files:
nothing to commit, working tree clean
diff --git a/src/main.py b/src/main.py
index 0000000..1111111 100644
--- a/src/
+++ b/src/
@@ -1,7 +1,9 @@
new file mode 100644
total 48
drwxr-xr-x  5 user  staff   160 Jan  1 12:00 .
-rw-r--r--  1 user  staff  1024 Dec 31 10:30 package.json
drwxrwxr-x 2 root root 4096 Oct 15 09:00 node_modules
/usr/local/lib/python3.11/site-packages/ /home/user/.local/bin /Users/ /Applications/ /private/tmp/
Traceback (most recent call last):
  File "/home/user/project/tests/test_main.py", line 42, in test_
    raise ValueError("invalid value: expected a string")
ModuleNotFoundError: No module named 'requests'
AssertionError: assert False
============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-8.0.0, pluggy-1.4.0
collected 12 items
tests/test_main.py::test_  PASSED [ 50%]
============================== 12 passed in 0.45s ==============================
npm run build && npm test 2>&1 | head -20
npm ERR! code ENOENT
node_modules/react-dom/cjs/ dist/index.js
> vite build
error TS2345: Argument of type 'string' is not assignable to parameter of type 'number'.
error: expected `;`, found `}`
   Compiling project v0.1.0 (/home/user/project)
    Finished `dev` profile [unoptimized + debuginfo] target(s) in 1.23s
cd /home/user/project && grep -rn "error" --include="*.ts" . | head; ls -la; cat package.json; sed -n
'1,120p'; rg -n
bash -lc find . -type f -name "*.py" -not -path "./node_modules/*" | wc -l; echo "---"; mkdir -p; python3
-m pytest -q
Exit code: 0
Wall time: 0.1 seconds
Total output lines: 120
Output:
Chunk ID:
Process exited with code 0
Original token count:
"""
_CODE: Final = """
from __future__ import annotations
import { useState, useEffect } from 'react';
import React from "react";
import * as path from 'path';
const result = await fetch(`${baseUrl}/api/v1/`);
export default function App({ children }: { children: React.ReactNode }) {
export interface Props { name: string; value?: number; onChange: (value: string) => void; }
export async function get(id: string): Promise<void> {
  if (!response.ok) { throw new Error(`HTTP error: ${response.status}`); }
  return (
    <div className="flex items-center justify-between">
      <span className="text-sm text-gray-500">
</div>
  );
}
async def main() -> None:
def __init__(self, name: str, value: int | None = None) -> None:
        self.name = name
        return self._value
    for item in items:
        if item is not None and len(item) > 0:
            print(f"{item}")
    except Exception as e:
        logger.error("failed: %s", e)
if __name__ == "__main__":
#!/usr/bin/env python3
import json, os, re, sys
from pathlib import Path
from typing import Any, Optional
class Test(unittest.TestCase):
pub fn new() -> Self { Self { } }
impl std::fmt::Display for Error { fn fmt(&self, f: &mut Formatter) -> Result<(), Box<dyn
std::error::Error>> {
use std::collections::HashMap;
#[derive(Debug, Clone)]
let mut result = Vec::new();
func (s *Server) Handle(ctx context.Context) error {
	if err != nil {
		return err
	}
package main
import "fmt"
  "scripts": { "build": "tsc", "test": "vitest" }, "dependencies": { "typescript": "^5.0.0" }, "version":
"1.0.0"
localhost:3000 https://github.com/ http://127.0.0.1:8080/ https://docs.
SELECT * FROM users WHERE id = ? ORDER BY created_at DESC LIMIT 10
// eslint-disable-next-line
/* ---------------------------------------------------------------- */
"""
_TOOLS: Final = """
<system-reminder>
This is a reminder that your todo list is currently empty. DO NOT mention this to the user explicitly
because they
are already aware.
</system-reminder>
<command-name>/clear</command-name>
<command-message>init</command-message>
<command-args></command-args>
<local-command-stdout></local-command-stdout>
<environment_context>
  <cwd>/home/user/project</cwd>
  <approval_policy>on-request</approval_policy>
  <sandbox_mode>workspace-write</sandbox_mode>
  <network_access>restricted</network_access>
  <shell>bash</shell>
</environment_context>
<user_instructions>
</user_instructions>
Todos have been modified successfully. Ensure that you continue to use the todo list to track your
progress. Please
proceed with the current tasks if applicable
The file /home/user/project/src/ has been updated. Here's the result of running `cat -n` on a snippet of
the edited file:
     1→
    10→
   100→
File created successfully at: /home/user/project/
Success. Updated the following files:
M src/
*** Begin Patch
*** Update File: src/
*** Add File:
*** End Patch
[Request interrupted by user for tool use]
The user doesn't want to proceed with this tool use. The tool use was rejected
No files found
Plan updated
{"cells":[{"type":"text","text":""},{"role":"user","content":""}],"isError":false,"error":null,"success":true}
{"todos":[{"content":"","status":"pending","activeForm":"","priority":"high","id":"1"},{"status":"in_progress"},
{"status":"completed"}]}{"pattern":"**/*.ts","path":"/home/user/project","output_mode":"content","-n":true}
{"file_path":"/home/user/project/src/","old_string":"","new_string":"","replace_all":false}{"offset":1,"limit":100}
{"command":["bash","-lc","cd /home/user/project &&
"],"workdir":"/home/user/project","timeout_ms":120000,"yield_time_ms":
1000,"max_output_tokens":10000}{"subagent_type":"general-purpose","prompt":""}{"url":"https://","query":""}
{"command":"","description":"","timeout":120000}{"cmd":"","file_path":"/home/user/project/"}
"""
_OWN: Final = """
{"cwd":"/Users/","version":0,"created_at":17,"parent_session":"","origin":"subagent","delegation_depth":1,"seed_length":0}
"kind":"provider","provider":"model","broken":"SESSION_QUERY_","digest":"","inherited":,"notes":["","calls":["call_toolu_01
[["session/title","session/context","turn/start","step/start","request/header","request/context","system/message",
"assistant/chunk","assistant/message","tool/call","tool/result","step/end","turn/end"],[0,1,0,2,3,3,4,5,6,7,7,7,7,8,9,10]
,[0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],[17,0,0,0,0,0,0,0,0,1,0],[[1,"append"],[2,"append"],
[3,"append"],[4,"append"],[5,"append"],[6,"append"],[8,"append"],[10,"append"]],[[1,[]],[2,[0]],[4,[3]],[5,[]],[6,[5]],
[8,[7]],[9,[8]]]]["turn/start","user/message","assistant/message","tool/call","tool/result","turn/end","session/title",
"codex/event_msg","codex/turn_context","claude-code/file-history-snapshot","claude-code/system","step/start","step/end"]
{"header":{"id":"","created_at":17,"cwd":"/home/","version":0,"parent_session":""},"title_event":[],"settled_title":[
],"reported":["",[0],{"kind":"fallback"},null,17]}
"""
DICTIONARY: Final = "".join((_CODE, _PROSE, _SHELL, _TOOLS, _OWN)).encode()
