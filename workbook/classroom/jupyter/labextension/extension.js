// The learner's cells in JupyterLab: a bar beside each, and a command that goes to the next one
// that is still open. What explains an open exercise is folded. The notebook is saved as soon as a
// cell shows a verdict or an answer. A notebook without cells tagged `your-turn` is left alone.
//
// This is what a bundler would make of an extension, written by hand: JupyterLab loads the file,
// hands the modules that it shares to `init`, and asks `get` for the plugin. The file must not lie
// in a folder `static`: browsers are told to cache what is in there for a year.
(() => {
  const NAME = "cs336-workbook";
  const COMMAND = `${NAME}:next-open-exercise`;
  const ANSWER = "application/vnd.workbook.answer+json"; // as in study/answers.py
  const VERDICT = "application/vnd.workbook.check+json"; // as there; of `check` and `tick`
  const STUDY = "workbook-study"; // of a panel with such cells; the shortcut asks for it, too
  // Roles, as in study/notebooks.py. What has the role "help" is never folded.
  const EXPLAINS = new Set(["prose", "guess", "evidence", "reveal"]);
  const style = new URL("style.css", document.currentScript.src).href;

  const hasTag = ({ model }, tag) => [].concat(model.getMetadata("tags") ?? []).includes(tag);

  const isYours = (cell) => hasTag(cell, "your-turn");

  /** Tell whether a cell may stay empty: a step on the way to a long exercise. */
  const isOptional = (cell) => hasTag(cell, "optional");

  const isCode = ({ model }) => model.type === "code";

  const about = ({ model }) => model.getMetadata("workbook") ?? {};

  const shown = ({ model: { outputs } }) =>
    Array.from({ length: outputs.length }, (_, i) => outputs.get(i).data);

  const isCounted = (data) => ANSWER in data || VERDICT in data;

  /** Tell whether a check cell shows ✓, or an answer cell holds a text not judged wrong. */
  const isProven = (cell) =>
    shown(cell).some((data) => {
      const verdict = [].concat(data["text/plain"] ?? "").join("");
      const answer = data[ANSWER];
      return verdict.startsWith("✓") || (answer?.text && answer.verdict !== "wrong");
    });

  /** List the learner's cells of a notebook: the cell, its index, and whether it is done. */
  const exercises = ({ widgets }) => {
    const key = (role, { problem, part = "" }) => [role, problem, part].join(" ");
    const proofs = widgets.filter(
      (cell) => ["check", "answer"].includes(about(cell).role) && isCode(cell) && isProven(cell),
    );
    const proven = new Set(proofs.map(about).map((each) => key(each.role, each)));
    const isDone = (cell) =>
      proven.has(key("answer", about(cell))) ||
      (about(cell).role !== "answer" && proven.has(key("check", about(cell))));
    return widgets
      .map((cell, index) => ({ cell, index, done: isDone(cell) }))
      .filter(({ cell }) => isYours(cell));
  };

  const isHeading = ({ model }) =>
    model.type === "markdown" && model.sharedModel.getSource().startsWith("#");

  /**
   * List the cells that explain each open exercise, those of its problem anywhere below its try
   * cell, by sections: each heading begins one. The section right above the problem's next try cell
   * introduces that.
   */
  const spoilers = ({ widgets }, found) => {
    const states = new Map(found.map(({ cell, done }) => [cell, done]));
    const runs = [];
    const open = new Set(); // the problems of the open exercises that we are below
    for (const cell of widgets) {
      const { role, problem } = about(cell);
      if (role === "try") {
        if (open.has(problem) && runs.at(-1).some(isHeading)) runs.pop();
        open.delete(problem);
        if (states.get(cell) === false) open.add(problem);
        runs.push([]);
      } else if (open.has(problem) && EXPLAINS.has(role)) {
        if (isHeading(cell)) runs.push([]);
        runs.at(-1).push(cell);
      } else if (role === "answer") {
        runs.push([]); // what stands above an answer introduces nothing below it
      }
    }
    return runs.filter((run) => run.length > 0);
  };

  /** List the cells for examples of the learner's own in which nothing is written yet, each alone. */
  const offers = ({ widgets }) =>
    widgets
      .filter(
        (cell) =>
          about(cell).role === "examples" && /^ +\.\.\.$/m.test(cell.model.sharedModel.getSource()),
      )
      .map((cell) => [cell]);

  /** Name what a fold holds: the section of its heading, our code, or what explains. */
  const contentOf = (run) =>
    isHeading(run[0])
      ? run[0].model.sharedModel.getSource().match(/^#+ *(.*)/)[1]
      : run.some((cell) => about(cell).role === "reveal") ? "our code" : "the explanation";

  /** Say what a fold holds, and when it opens. */
  const titleOf = (run) =>
    about(run[0]).role === "examples"
      ? "Optional: before you write it, say in a test what a right one gives (click to open)"
      : `Folded until you have solved this: ${contentOf(run)} (click to read it now)`;

  /** List the names by which links reach the headings of a cell, as JupyterLab makes them. */
  const headings = ({ model }) =>
    Array.from(model.sharedModel.getSource().matchAll(/^#+ *(.*)$/gm), ([, text]) =>
      text.trim().replaceAll(" ", "-"),
    );

  /**
   * Bring a cell into view. JupyterLab attaches cells below the view in idle time, and nothing is
   * scrolled to one that is not there yet: so it is tried, a frame at a time, until it is seen.
   */
  let newest; // target of a move: an older one ends, or the two would pull in turns
  const moveTo = async (notebook, cell, place, onceThere = () => {}) => {
    newest = cell;
    let isThere = false;
    const frame = () => new Promise(requestAnimationFrame);
    const isSeen = () => {
      const { top, bottom, height } = cell.node.getBoundingClientRect();
      const view = notebook.node.getBoundingClientRect();
      return cell.node.isConnected && height > 0 && top < view.bottom - 20 && bottom > view.top + 20;
    };
    const end = Date.now() + 20000;
    for (let still = 0; still < 3 && Date.now() < end; still = isSeen() ? still + 1 : 0) {
      if (!isSeen()) {
        await notebook.scrollToItem(notebook.widgets.indexOf(cell), place).catch(() => {});
      }
      if (!isThere && cell.node.isConnected) {
        isThere = true;
        onceThere();
      }
      await frame(); // in which others may still move it
      if (notebook.isDisposed || cell.isDisposed || newest !== cell) return;
    }
  };

  /** Tick off the fact that was clicked, below a text; what `tick` says replaces the panel. */
  const tickOff = ({ content, sessionContext }, target) => {
    const holds = ({ node }) => node.contains(target);
    const { model, outputArea } = content.widgets.find(holds);
    const place = outputArea.widgets.findIndex(holds);
    const { problem, part } = model.outputs.get(place).data[VERDICT] ?? {};
    const named = [problem, part].map((name) => (name ? JSON.stringify(name) : "None")).join(", ");
    const code = `__import__("workbook").tick(${named}, ${parseInt(target.textContent)})`;
    const request = { code, store_history: false };
    const asked = problem && sessionContext.session?.kernel?.requestExecute(request);
    if (!asked) return;
    asked.onIOPub = ({ header, content: { data, metadata } }) => {
      if (header.msg_type !== "execute_result") return;
      model.outputs.set(place, { output_type: "display_data", data, metadata });
    };
  };

  const activate = (actions, app, tracker, palette) => {
    const link = document.createElement("link");
    document.head.append(Object.assign(link, { rel: "stylesheet", href: style }));

    const watch = (panel) => {
      const notebook = panel.content;
      const asked = new WeakSet(); // folded cells that the learner wanted to see

      const draw = () => {
        const found = exercises(notebook);
        const folded = new Map(); // of a folded cell, the cells that open with it
        for (const run of [...spoilers(notebook, found), ...offers(notebook)]) {
          if (run.some((cell) => asked.has(cell))) run.forEach((cell) => asked.add(cell));
          else run.forEach((cell) => folded.set(cell, run));
        }
        const states = new Map(found.map(({ cell, done }) => [cell, done]));
        for (const cell of notebook.widgets) {
          cell.toggleClass("workbook-open", states.get(cell) === false);
          cell.toggleClass("workbook-done", states.get(cell) === true);
          const run = folded.get(cell);
          cell.toggleClass("workbook-folded", run !== undefined);
          cell.toggleClass("workbook-folded-first", run?.[0] === cell);
          if (run?.[0] === cell) cell.node.dataset.workbookTitle = titleOf(run);
        }
        if (panel.hasClass(STUDY) !== found.length > 0) {
          panel.toggleClass(STUDY);
          app.commands.notifyCommandChanged(COMMAND); // its button comes or goes
        }
      };

      let isDue = false;
      const drawSoon = () => {
        if (isDue) return; // a cell that runs, or is typed in, changes often
        isDue = true;
        setTimeout(() => {
          isDue = false;
          if (!panel.isDisposed) draw();
        }, 50);
      };

      // A link of the contents leads to a heading, which may be folded away.
      const openTarget = (link) => {
        const name = decodeURIComponent(link.getAttribute("href").slice(1));
        const cell = notebook.widgets.find((each) => isHeading(each) && headings(each).includes(name));
        if (!cell?.hasClass("workbook-folded")) return;
        asked.add(cell);
        draw();
        moveTo(notebook, cell, "start");
      };

      notebook.node.addEventListener("click", ({ target }) => {
        const link = target.closest('a[href^="#"]');
        if (link) openTarget(link);
        if (target.closest(".workbook-fact")) tickOff(panel, target);
        const node = target.closest(".workbook-folded-first");
        if (!node) return;
        asked.add(notebook.widgets.find((cell) => cell.node === node));
        draw();
      });
      notebook.modelContentChanged.connect(drawSoon);
      notebook.activeCellChanged.connect(drawSoon); // JupyterLab's form for tags sends no signal
      panel.context.ready.then(drawSoon);
    };

    /**
     * Let each save of a notebook wait for the one before, whoever asks: the clock, a key or we.
     * During a save JupyterLab does not know yet what it has written, and would ask whether to
     * overwrite a file that has "changed on disk".
     */
    const saveInTurn = ({ content: notebook, context }) => {
      const save = context.save.bind(context);
      let last = Promise.resolve();
      let hasChanged = false; // since the last save began

      notebook.modelContentChanged.connect(() => {
        hasChanged = true;
      });
      const saveNow = async () => {
        hasChanged = false;
        await save();
        // JupyterLab takes what was typed during a save for saved, and would never store it.
        if (hasChanged) context.model.dirty = true;
      };
      context.save = () => {
        last = last.catch(() => {}).then(saveNow); // whoever asked hears of a failure
        return last;
      };
    };

    // What counts as answered is then in the file, whatever becomes of the browser.
    actions.executed.connect((_, { notebook, cell }) => {
      const panel = tracker.find(({ content }) => content === notebook);
      if (!panel?.hasClass(STUDY) || !isCode(cell) || !shown(cell).some(isCounted)) return;
      const { context } = panel;
      if (context.model.dirty && context.canSave !== false) {
        context.save().catch(() => {}); // JupyterLab itself says what is wrong
      }
    });

    const goToNext = async () => {
      const notebook = tracker.currentWidget.content;
      const open = exercises(notebook).filter(({ cell, done }) => !done && !isOptional(cell));
      const next = open.find(({ index }) => index > notebook.activeCellIndex) ?? open[0];
      if (!next) {
        const message = "Every exercise in this notebook is done.";
        const options = { autoClose: 5000 };
        return app.commands.execute("apputils:notify", { message, type: "success", options });
      }
      notebook.mode = "command";
      notebook.activeCellIndex = next.index;
      notebook.deselectAll();
      // The keyboard is the notebook's again after a click on the button; a cell that is not
      // attached yet cannot take it.
      notebook.node.focus({ preventScroll: true });
      await moveTo(notebook, next.cell, "center", () => notebook.activate());
    };

    const isStudy = () => tracker.currentWidget?.hasClass(STUDY) ?? false;
    app.commands.addCommand(COMMAND, {
      label: "Next open exercise",
      caption: "Go to the next exercise that you have not done yet",
      isEnabled: isStudy,
      isVisible: isStudy,
      execute: goToNext,
    });
    palette?.addItem({ command: COMMAND, category: "Notebook Operations" });
    tracker.currentChanged.connect(() => app.commands.notifyCommandChanged(COMMAND));
    const begin = (panel) => {
      saveInTurn(panel);
      watch(panel);
    };
    tracker.forEach(begin);
    tracker.widgetAdded.connect((_, panel) => begin(panel));
  };

  let shared; // the versions of each module, such as JupyterLab's own, which is loaded
  const load = async (name) =>
    (await Object.values(shared[name]).find(({ loaded }) => loaded).get())();

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB[NAME] = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const { INotebookTracker, NotebookActions } = await load("@jupyterlab/notebook");
      const { ICommandPalette } = await load("@jupyterlab/apputils");
      const plugin = {
        id: `${NAME}:plugin`,
        autoStart: true,
        requires: [INotebookTracker],
        optional: [ICommandPalette],
        activate: (...services) => activate(NotebookActions, ...services),
      };
      return () => ({ default: plugin, __esModule: true });
    },
  };
})();
