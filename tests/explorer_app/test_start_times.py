import threading

from explorer_app.start_times import StartTimes, mark, table


def test_a_step_counts_the_first_time_only_and_names_its_thread() -> None:
    times = StartTimes(began_s=0.0)
    thread = threading.Thread(target=lambda: times.mark("torch"), name="importing")
    thread.start()
    thread.join()
    first = times.marks
    times.mark("torch")
    assert times.marks == first
    assert [(mark.step, mark.thread) for mark in first] == [("torch", "importing")]


def test_the_table_lists_steps_in_the_order_in_which_they_were_reached() -> None:
    times = StartTimes(began_s=0.0)
    for step in ("imports", "window shown"):
        times.mark(step)
    head, *lines = times.table().splitlines()
    assert head.split() == ["step", "wall", "s", "CPU", "s", "thread"]
    assert [line[:28].strip() for line in lines] == ["imports", "window shown"]
    assert all(line.endswith("  window") for line in lines)


def test_the_first_step_of_this_process_is_its_interpreter() -> None:
    mark("a step of a test")
    assert table().splitlines()[1].startswith("interpreter")
